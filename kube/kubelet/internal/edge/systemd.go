package edge

import (
	"context"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

// newSystemdNotifier returns the component that reports readiness to systemd and then, if
// the unit has a WatchdogSec, liveness, twice in that time: systemd restarts a kubelet
// whose sync loop hangs (rule sv-5).
func newSystemdNotifier(b stores.Base, a *agent.Agent) stores.Component {
	return func(ctx context.Context) error {
		notifySystemd(b, daemon.SdNotifyReady)
		interval, err := daemon.SdWatchdogEnabled(false)
		if err != nil {
			b.Logger.Warn("Failed to read the interval of the systemd watchdog", "err", err)
		}
		if err != nil || interval <= 0 {
			<-ctx.Done()
			return nil
		}
		for {
			if err := a.Healthy(); err != nil {
				b.Logger.Error("Sync loop is not healthy; the systemd watchdog is not notified and will restart the kubelet", "err", err)
			} else {
				notifySystemd(b, daemon.SdNotifyWatchdog)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(interval / 2):
			}
		}
	}
}

func notifySystemd(b stores.Base, state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		b.Logger.Warn("Failed to notify systemd", "state", state, "err", err)
	}
}
