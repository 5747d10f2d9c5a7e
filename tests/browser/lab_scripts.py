"""The questions asked inside the page, as JavaScript."""

READY = """() => {
  const p = window.jupyterapp && window.jupyterapp.shell.currentWidget;
  const k = p && p.sessionContext && p.sessionContext.session && p.sessionContext.session.kernel;
  return !!k && k.status === 'idle';
}"""

IDLE = """() => {
  const k = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const busy = [...document.querySelectorAll('.jp-InputPrompt')].some(
    e => e.textContent.includes('[*]'));
  return k && k.status === 'idle' && !busy;
}"""

ERRORS = """() => [...document.querySelectorAll(
  '.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.error"],' +
  '.jp-OutputArea-output[data-mime-type="application/vnd.jupyter.stderr"]')]
  .filter(e => !window.jupyterapp.shell.currentWidget.content.widgets.some(
    c => c.node.contains(e) && (c.model.getMetadata('tags') || []).includes('raises-exception')))
  .map(e => e.innerText.slice(0, 400))"""

LEFT_OVER = """() => window.jupyterapp.shell.currentWidget.content.widgets
  .filter(c => c.model.type === 'code' && c.model.sharedModel.source.trim()
    && c.model.executionCount === null)
  .map(c => c.model.sharedModel.source.slice(0, 80))"""

INSIDE = ".jp-Cell-outputArea "
SLIDER = f"{INSIDE}.noUi-handle, {INSIDE}input[type=range]"
BUTTON = f"{INSIDE}.jupyter-widgets button, {INSIDE}button.jupyter-button"
OTHERS = f"{INSIDE}.jupyter-widgets select, {INSIDE}.jupyter-widgets input:not([type=range])"
FIELD = f"{INSIDE}.jupyter-widgets input[type=text], {INSIDE}.jupyter-widgets textarea"
CONTROLS = {
    "slider": SLIDER,
    "button": BUTTON,
    "field": FIELD,
    "any": f"{SLIDER}, {BUTTON}, {OTHERS}, {FIELD}",
}

NAME = """e => {
  const label = (e.closest('.jupyter-widgets') || e).querySelector('.widget-label');
  const name = e.ariaLabel || e.innerText || (label && label.innerText) || e.title || '';
  const cells = [...document.querySelectorAll('.jp-Notebook .jp-Cell')];
  return [name.slice(0, 60), 1 + cells.indexOf(e.closest('.jp-Cell'))];
}"""

SEEN = """cell => {
  const copy = cell.querySelector('.jp-Cell-outputArea').cloneNode(true);
  copy.querySelectorAll('.widget-slider, .noUi-target, button').forEach(e => e.remove());
  return copy.innerHTML;
}"""

WATCH = f"""control => {{
  const seen = {SEEN}, cell = control.closest('.jp-Cell'), old = window.kvlabWatch;
  if (old) old.observer.disconnect();
  const w = window.kvlabWatch = {{cell, seen, before: seen(cell), pressed: null, drawn: null}};
  document.addEventListener('keydown', () => {{ w.pressed = performance.now(); }},
    {{capture: true, once: true}});
  w.observer = new MutationObserver(records => {{
    const own = r => (r.target.closest || (() => null)).call(r.target, '.widget-slider, button');
    if (w.drawn === null && w.pressed !== null && records.some(r => !own(r)))
      requestAnimationFrame(() => {{ w.drawn ??= performance.now(); }});
  }});
  w.observer.observe(cell.querySelector('.jp-Cell-outputArea'),
    {{subtree: true, childList: true, characterData: true, attributes: true}});
}}"""

RESULT = """() => {
  const w = window.kvlabWatch;
  const took = w.drawn === null ? null : Math.round(w.drawn - w.pressed);
  return [w.seen(w.cell) !== w.before, took];
}"""

ACTIVE = "() => (document.activeElement && document.activeElement.dataset.kvlabTab) || ''"

AXE = """async () => {
  const ours = [...document.querySelectorAll('.jp-Cell-outputArea [class*="kvlab-"]')];
  if (!ours.length) return [];
  const found = await axe.run({include: ours}, {resultTypes: ['violations']});
  return found.violations.flatMap(v => v.nodes.map(
    n => ({id: v.id, impact: n.impact || v.impact, where: n.html.slice(0, 160)})));
}"""

SHOT_STEP = """number => {
  const box = document.querySelector('.jp-WindowedPanel-outer');
  box.scrollTop = number * box.clientHeight * 0.92;
  return box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
}"""
