"""Names for slider handles: ipywidgets shows a description, but screen readers do not hear it.

A few lines of script copy each description to the handle that the keyboard moves. Where scripts
don't run, sliders work as before.
"""

import ipywidgets as widgets

SCRIPT = """<script>(() => {
  if (window.kvlabNames) { window.kvlabNames(); return; }
  let waiting = false;
  const name = () => {
    waiting = false;
    for (const handle of document.querySelectorAll(".kvlab-widget [role=slider]")) {
      const slider = handle.closest(".widget-inline-hbox, .jupyter-widget-inline-hbox");
      const label = slider && slider.querySelector("label");
      const text = label ? label.textContent : "";
      if (text && handle.getAttribute("aria-label") !== text) {
        handle.setAttribute("aria-label", text);
      }
    }
  };
  window.kvlabNames = () => { if (!waiting) { waiting = true; requestAnimationFrame(name); } };
  new MutationObserver(window.kvlabNames).observe(document.body, {childList: true, subtree: true});
  window.kvlabNames();
})();</script>"""


def slider_names() -> widgets.Output:
    """Return an invisible output that gives every slider of ours its name for screen readers.

    >>> "aria-label" in slider_names().outputs[0]["data"]["text/html"]
    True
    """
    data = {"text/html": SCRIPT, "text/plain": ""}
    shown = {"output_type": "display_data", "data": data, "metadata": {}}
    layout = widgets.Layout(height="0px", width="0px", margin="0px", overflow="hidden")
    return widgets.Output(outputs=(shown,), layout=layout)
