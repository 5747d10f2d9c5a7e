"""Widgets: thin controllers from controls to figures. Import from the modules; nothing is eager."""
