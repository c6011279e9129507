import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import { Signal, type ISignal } from '@lumino/signaling';

export const NOTICES = ['failures', 'failures and restarts', 'never'] as const;
export type Notices = (typeof NOTICES)[number];

/** What the person has chosen under Settings, "Streaming Workbench"; until the settings are read, and without them, the defaults. */
export class Preferences {
  /** Emitted when one of them has changed. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Whether the status bar shows the jobs of the active notebook. */
  get statusBar(): boolean {
    return this._settings?.get('statusBar').composite !== false;
  }

  /** Which news of a job appear as a notification. */
  get notices(): Notices {
    const chosen = this._settings?.get('notices').composite;
    return NOTICES.find(notices => notices === chosen) ?? 'failures and restarts';
  }

  /** Whether the dashboard of a job that starts is docked by itself. */
  get dockNewJobs(): boolean {
    return this._settings?.get('dockNewJobs').composite === true;
  }

  /** Read the settings of the plugin, and follow them. */
  async follow(registry: ISettingRegistry, plugin: string): Promise<void> {
    this._settings = await registry.load(plugin);
    this._settings.changed.connect(() => this._changed.emit());
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private _settings: ISettingRegistry.ISettings | null = null;
}
