"""A page with JupyterLab, driven by its commands: clicking cells would depend on where they happen to be."""

from __future__ import annotations

import nbformat
from browsing import PATIENCE_MS, TOKEN


class Front:
    """A page with JupyterLab, driven by its commands."""

    def __init__(self, page, url, root):
        self.page, self.root = page, root
        page.set_default_timeout(PATIENCE_MS)
        page.goto(f"{url}/lab?token={TOKEN}&reset")
        self.await_restored()
        self.execute("workbench:show-jobs")

    def await_restored(self):
        self.page.wait_for_function("window.jupyterapp !== undefined")
        self.page.evaluate("window.jupyterapp.restored")

    def clear(self):
        """End all kernels and close all that is open, which takes a tenth of the time of another page."""
        self.page.evaluate(
            """async () => {
                const { commands, serviceManager, shell } = window.jupyterapp
                await serviceManager.sessions.shutdownAll()
                for (const widget of [...shell.widgets('main')]) widget.dispose()
                await commands.execute('apputils:dismiss-notification')
            }"""
        )

    def execute(self, command, wait=True, **args):
        self.page.evaluate(
            "([id, args, wait]) => { const done = window.jupyterapp.commands.execute(id, args);"
            " return wait ? done.then(() => null) : null }",
            [command, args, wait],
        )

    def open(self, path, *cells):
        """Open a notebook, made of the cells if it is new, and wait for its kernel."""
        if cells:
            sources = [nbformat.v4.new_code_cell(cell) for cell in cells]
            nbformat.write(nbformat.v4.new_notebook(cells=sources), self.root / path)
        opened = self.page.evaluate(
            """async path => {
                const shell = window.jupyterapp.shell
                const ref = [...shell.widgets('main')].find(widget => widget.context)?.id
                const kernel = { name: 'python3' }
                const options = ref ? { ref } : {}
                const args = { path, kernel, options }
                const widget = await window.jupyterapp.commands.execute('docmanager:open', args)
                await widget.context.ready
                await widget.sessionContext.ready
                await widget.sessionContext.session.kernel.info
                return widget.context.path
            }""",
            path,
        )
        assert opened == path

    def run_cell(self, index, wait=True):
        self.page.evaluate(
            "index => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = index }",
            index,
        )
        self.execute("notebook:run-cell", wait=wait)

    def printed(self, index):
        """What a cell of the current notebook has printed."""
        return self.page.evaluate(
            "index => window.jupyterapp.shell.currentWidget.content.widgets[index].model.outputs.toJSON()"
            ".filter(output => output.output_type === 'stream').map(output => output.text).join('')",
            index,
        )

    def close(self, path):
        """Save a notebook and close its tab; its kernel lives on."""
        self.page.evaluate(
            """async path => {
                const shell = window.jupyterapp.shell
                const notebook = [...shell.widgets('main')].find(widget => widget.context?.path === path)
                await notebook.context.save()
                notebook.close()
            }""",
            path,
        )

    def dock(self, *views):
        """Open views of jobs, all at the same moment, and put them below one another."""
        self.page.evaluate(
            """async views => {
                const { commands, shell } = window.jupyterapp
                const open = ([job, view]) => commands.execute('workbench:open-view', { job, view })
                await Promise.all(views.map(open))
                const docked = [...shell.widgets('main')].filter(widget => widget.hasClass('wb-Dashboard'))
                const [first, ...rest] = views.map(([job, view]) => docked.find(p => p.job === job && p.view === view))
                rest.forEach(panel => shell.add(panel, 'main', { mode: 'split-bottom', ref: first.id }))
            }""",
            views,
        )

    def docked(self, job):
        """The selector of what is docked of a job."""
        return f".wb-Dashboard[aria-label*='of the streaming job {job} in']"

    def restart_kernel(self, path):
        self.page.evaluate(
            """path => [...window.jupyterapp.shell.widgets('main')].find(widget => widget.context?.path === path)
                .sessionContext.session.kernel.restart()""",
            path,
        )

    def text(self, selector):
        return self.page.locator(selector).inner_text()

    def appears(self, selector, text=None):
        found = self.page.locator(selector) if text is None else self.page.locator(selector, has_text=text)
        found.first.wait_for(state="visible")
        return found.first

    def jobs(self):
        return self.page.locator(".wb-Job").evaluate_all("items => items.map(item => item.dataset.job)")
