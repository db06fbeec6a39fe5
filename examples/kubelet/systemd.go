package main

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// notify tells systemd how the agent is, if that has started it with Type=notify.
func (a *assembly) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		a.logger.Warn("systemd can't be told", "state", state, "err", err)
	}
}

// underSystemd tells systemd that the agent is ready, and then, if its unit has a
// WatchdogSec, twice in that time that it is well: an agent whose loop hangs is not, and
// is started anew (sv-5).
func (a *assembly) underSystemd(ctx context.Context) error {
	a.notify(daemon.SdNotifyReady)
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		a.logger.Warn("systemd's watchdog can't be fed", "err", err)
	}
	if err != nil || interval <= 0 {
		<-ctx.Done()
		return nil
	}
	for {
		if err := a.pods.loop.Healthy(); err != nil {
			a.logger.Error("systemd's watchdog is not fed: the agent is to be started anew", "err", err)
		} else {
			a.notify(daemon.SdNotifyWatchdog)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval / 2):
		}
	}
}
