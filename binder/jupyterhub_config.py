"""An example for a JupyterHub that serves a class from one machine; copy what you need.

The sizes are those of chapters/instructors/class.md. SHARED holds one copy of SmolLM2 for all:
fill it once with `KVLAB_HOME=/srv/kvlab kvlab fetch smollm2`, then take away the right to write.
Each student's answers stay in the student's own home.
"""

c = get_config()  # noqa: F821  (JupyterHub puts it there)

SHARED = "/srv/kvlab"
COURSE = "kvlab"  # where a student finds a copy of the repository, from the home folder

c.Spawner.default_url = f"/lab/tree/{COURSE}/chapters/00_start_here.ipynb"
c.Spawner.environment = {
    "KVLAB_HOME": SHARED,
    "OMP_NUM_THREADS": "1",  # one thread a kernel: a room full of kernels keeps the cores busy
    "OMP_WAIT_POLICY": "PASSIVE",  # threads that wait sleep
}
c.Spawner.mem_guarantee = "700M"
c.Spawner.mem_limit = "3G"
c.Spawner.cpu_guarantee = 0.25
c.Spawner.cpu_limit = 2.0
