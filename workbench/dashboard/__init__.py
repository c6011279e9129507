"""The live dashboard: the state of a job, and the controls that change it while it runs.

The dashboard draws only what is in `workbench.telemetry.frames`; every request goes to the job's handle. One module per
part turns a frame into rows with pure functions, and shows the rows by patching Bokeh data sources; `view` lays the
parts out, `transport` carries them to a notebook page, `pump` feeds all open pages.

Panel and Bokeh are imported here and nowhere else.

Belongs here: the display of a job, and the controls that change it.
Does not: measuring (``telemetry``), and the actions behind controls (``api``).
"""
