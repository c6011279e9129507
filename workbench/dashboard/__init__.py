"""The live dashboard: what a job does now, and the controls that change it while it runs.

Everything that is drawn comes from `workbench.telemetry.frames`; everything that is asked goes to the job's handle.
A module per part of the picture turns a frame into rows with pure functions, and shows the rows by patching Bokeh data
sources; `view` lays the parts out, `transport` carries them to a notebook page, `pump` feeds all open pages.

Panel and Bokeh are imported here and nowhere else.

Belongs here: what a job looks like, and the controls that change it.
Does not: measuring (``telemetry``), and what a control does (``api``).
"""
