package podwing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	goruntime "runtime"
	"time"

	v1 "k8s.io/api/core/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/shutdown/logind"
	"github.com/kubeparts/kubeparts/status"
)

// newShutdown constructs the manager of graceful node shutdown.
func newShutdown(b stores.Base, statuses *status.Manager) (*shutdown.Manager, error) {
	groups, err := shutdownGroups(b.Configuration)
	if err != nil {
		return nil, err
	}
	own := b.Config.Host.Shutdown
	cfg := shutdown.Config{
		Policy: shutdown.Policy{Groups: groups, CarryOver: own.CarryOver, Propagation: own.Propagation, Flush: cmp.Or(own.Flush, 5*time.Second)},
		Pods:   b.Pods, Statuses: published{statuses, b}, Triggers: own.Triggers, State: b.Shutdown,
		Path: filepath.Join(b.Config.RootDir, shutdown.StateFile),
		Node: b.NodeRef, Record: b.Record, Logger: b.Logger,
		Hooks: b.Metrics.Shutdown().Join(shutdown.Hooks{Ended: func(i shutdown.EndedInfo) {
			b.Config.Notify(fmt.Sprintf("terminated %d pods in %v; the machine may shut down", i.Pods, i.Duration.Round(time.Millisecond)))
		}}),
	}
	if cfg.Triggers == nil && cfg.Policy.Enabled() && goruntime.GOOS == "linux" && b.Config.Host.Manage {
		t, err := logind.New(logind.Config{Logger: b.Logger})
		if err != nil {
			return nil, err
		}
		cfg.Triggers = []shutdown.Trigger{t}
	}
	if err := compose.Apply(b.Config.Adjust, &cfg); err != nil {
		return nil, err
	}
	if len(cfg.Triggers) > 0 && !cfg.Policy.Enabled() {
		return nil, errors.New("Config.Host.Shutdown.Triggers: pods have no time to terminate; want shutdownGracePeriod or shutdownGracePeriodByPodPriority")
	}
	return shutdown.New(cfg)
}

// shutdownGroups returns the grace periods of the Configuration, by priority (rules sh-2,
// sh-3).
func shutdownGroups(k *kubeletconfig.KubeletConfiguration) ([]shutdown.Group, error) {
	groups, err := shutdown.NewGroups(k.ShutdownGracePeriod.Duration, k.ShutdownGracePeriodCriticalPods.Duration)
	if err != nil {
		return nil, fmt.Errorf("shutdownGracePeriod, shutdownGracePeriodCriticalPods: %w", err)
	}
	if len(k.ShutdownGracePeriodByPodPriority) == 0 {
		return groups, nil
	}
	groups = nil
	for _, g := range k.ShutdownGracePeriodByPodPriority {
		groups = append(groups, shutdown.Group{Priority: g.Priority, Period: time.Duration(g.ShutdownGracePeriodSeconds) * time.Second})
	}
	return groups, nil
}

// published are the statuses of the pods of a shutdown.
type published struct {
	*status.Manager
	base stores.Base
}

// Report syncs pods and waits until their statuses are not ready. It does not wait for pods
// that already terminate.
func (p published) Report(ctx context.Context, pods []*v1.Pod) error {
	b := p.base
	for _, pod := range pods {
		b.Pods.PodChanged(pod.UID)
	}
	for _, pod := range pods {
		err := stores.Until(ctx, func() bool {
			state, known := b.Pods.State(pod.UID)
			s, _ := p.Status(pod.UID)
			return !known || state >= podworker.Terminating || !b.Shutdown.Unready(pod.UID) || !status.IsReady(&s)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
