"""The live dashboard: the state of a job, and the controls that change it while it runs.

Everything that is drawn comes from `workbench.telemetry.frames`; every request goes to the job's handle.
A module per part of the picture turns a frame into rows with pure functions, and shows the rows by patching Bokeh data
sources; `view` lays the parts out, `transport` carries them to a notebook page, `pump` feeds all open pages.

Panel and Bokeh are imported here and nowhere else.

Belongs here: how a job is drawn, and the controls that change it.
Does not: measuring (``telemetry``), and what a control does (``api``).
"""
