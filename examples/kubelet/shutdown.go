package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/shutdown"
	"github.com/kubeparts/kubeparts/shutdown/logind"
	"github.com/kubeparts/kubeparts/status"
)

// shutdownOptions are about a machine that stops, beside what a KubeletConfiguration
// has.
type shutdownOptions struct {
	on          string // triggers, with commas
	propagation time.Duration
	flush       time.Duration
	carryOver   bool

	terms chan os.Signal // since the program has begun; nil: they are no trigger
}

// has reports whether the trigger was asked for.
func (o *shutdownOptions) has(trigger string) bool {
	return slices.Contains(strings.Split(o.on, ","), trigger)
}

// hear takes note of a TERM from now on, if it says that the machine stops: one that
// comes while the agent starts must not end it, and leave the pods to the machine.
func (o *shutdownOptions) hear() {
	if o.has("sigterm") {
		o.terms = make(chan os.Signal, 1)
		signal.Notify(o.terms, syscall.SIGTERM)
	}
}

func (o *shutdownOptions) flags(fs *flag.FlagSet) {
	fs.StringVar(&o.on, "shutdown-on", "", "`triggers` that tell that the machine is about to stop, with commas: logind; sigterm: a TERM to the agent; http: a POST to /shutdown at --listen (DELETE calls it off), from who may read the file shutdown-token in --root: curl -X POST -H @ROOT/shutdown-token http://127.0.0.1:10258/shutdown, or with --unix-socket ROOT/agent.sock http://localhost/shutdown. Pods then have shutdownGracePeriod or shutdownGracePeriodByPodPriority to end (default logind on Linux, where these are set)")
	fs.DurationVar(&o.propagation, "shutdown-propagation", 0, "`time` that pods run on, beside their grace, after it was said that they are not ready, so that no more traffic comes to them; 30s at most")
	fs.DurationVar(&o.flush, "shutdown-flush", 5*time.Second, "`time` that the last statuses may take to reach the API server, beside what pods leave of theirs")
	fs.BoolVar(&o.carryOver, "shutdown-carry-over", false, "give the time that pods of one priority do not need to those after them")
}

// shutdownGroups reads a KubeletConfiguration (sh-2, sh-3).
func shutdownGroups(k kubeletconfig.KubeletConfiguration) ([]shutdown.Group, error) {
	groups, err := shutdown.Simple(k.ShutdownGracePeriod.Duration, k.ShutdownGracePeriodCriticalPods.Duration)
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

// A departure is the end of the pods of a machine that stops.
type departure struct {
	*shutdown.Manager
	byHTTP *shutdown.Manual // nil: not
	token  string           // of who may do so
	byTerm bool
	over   chan struct{} // closed when it was a TERM, and all pods have ended
}

// departures makes what ends the pods when the machine stops.
func (a *assembly) departures() (*departure, error) {
	o := a.opts.shutdown
	groups, err := shutdownGroups(a.opts.kubelet)
	if err != nil {
		return nil, err
	}
	d := &departure{over: make(chan struct{})}
	cfg := shutdown.Config{
		Policy: shutdown.Policy{Groups: groups, CarryOver: o.carryOver, Propagation: o.propagation, Flush: o.flush},
		Pods:   a.pods.running, Kill: a.endForShutdown, Cleaned: a.hasEnded,
		Report: a.reportAnew(d), Flush: func(ctx context.Context) error { return a.pods.statuses.Flush(ctx) },
		Changed: func() { a.tellOf(d) }, File: filepath.Join(a.opts.root, shutdown.StateFile),
		Node: a.nodeRef(), Record: a.record, Logger: a.logger,
		Hooks: a.count.departure(func(i shutdown.EndedInfo) {
			a.say(fmt.Sprintf("the machine may stop: %d pods were ended in %v", i.Pods, i.Took.Round(time.Millisecond)))
		}),
	}
	if cfg.Triggers, err = a.triggers(d, cfg.Policy.Enabled()); err != nil {
		return nil, err
	}
	d.Manager, err = shutdown.New(cfg)
	return d, err
}

// tellOf tells people and the cluster how it stands.
func (a *assembly) tellOf(d *departure) {
	if d.Err() != nil {
		a.say("the machine is about to stop: pods are being ended")
	} else {
		a.say("the machine does not stop, after all")
	}
	a.cluster.nodeChanged()
}

// triggers are those that were asked for.
func (a *assembly) triggers(d *departure, enabled bool) (all []shutdown.Trigger, err error) {
	on := a.opts.shutdown.on
	if on == "" && enabled && goruntime.GOOS == "linux" && a.opts.configured() {
		on = "logind"
	}
	if on != "" && !enabled {
		return nil, errors.New("--shutdown-on: pods have no time to end: --shutdown-grace-period=30s, or shutdownGracePeriodByPodPriority in the file of --config, gives them some")
	}
	for name := range strings.SplitSeq(on, ",") {
		var t shutdown.Trigger
		switch name {
		case "":
			continue
		case "logind":
			t, err = logind.New(logind.Config{Logger: a.logger})
		case "sigterm":
			d.byTerm = true
			t = shutdown.Signals{On: []os.Signal{syscall.SIGTERM}, Got: a.opts.shutdown.terms, Done: sync.OnceFunc(func() { close(d.over) })}
		case "http":
			if local, err := statuspage.Local(a.opts.page); a.opts.page != "" && (err != nil || !local) {
				return nil, fmt.Errorf("--shutdown-on=http: at --listen=%s anybody could end the pods; a loopback address or a unix socket is only for this machine", a.opts.page)
			} else if a.opts.page == "" {
				return nil, errors.New("--shutdown-on=http: there is no --listen to serve /shutdown at")
			}
			d.byHTTP = new(shutdown.Manual)
			t = d.byHTTP
			d.token, err = newToken(filepath.Join(a.opts.root, tokenFile))
		default:
			err = fmt.Errorf("--shutdown-on: %q is none of logind, sigterm and http", name)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// unready is what the status says of a pod that is about to be ended (F-63).
func (d *departure) unready(uid types.UID) status.Unready {
	if d.Unready(uid) {
		return status.Unready{Reason: shutdown.NodeShutdown, Message: shutdown.ErrShuttingDown.Error()}
	}
	return status.Unready{}
}

// pages are what --listen serves of it. A page of another site can't begin a shutdown,
// nor can who may not read the agent's files.
func (d *departure) pages() map[string]http.Handler {
	if d.byHTTP == nil {
		return nil
	}
	return map[string]http.Handler{"/shutdown": http.NewCrossOriginProtection().Handler(onlyWith(d.token, d.byHTTP))}
}

// endForShutdown ends a pod; what nobody waits for any more goes on ending.
func (a *assembly) endForShutdown(ctx context.Context, k shutdown.Kill) error {
	_, err := a.pods.workers.KillAndWait(ctx, k.Pod.UID, podworker.KillOptions{
		GracePeriodSeconds: &k.GracePeriodSeconds, Ending: shutdown.Ending(), Patience: math.MaxInt64,
	})
	return err
}

// hasEnded waits until nothing of a pod is left to do, its volumes among it.
func (a *assembly) hasEnded(ctx context.Context, pod *v1.Pod) error {
	return soon(ctx, func() bool {
		state, known := a.pods.workers.Known(pod.UID)
		return !known || state == podworker.Finished
	})
}

// reportAnew has the statuses of pods made anew, and waits for those that become not
// ready by that. One that is being ended already is not looked at any more.
func (a *assembly) reportAnew(d *departure) func(context.Context, []*v1.Pod) error {
	return func(ctx context.Context, pods []*v1.Pod) error {
		for _, pod := range pods {
			a.inbox.PodChanged(pod.UID)
		}
		for _, pod := range pods {
			err := soon(ctx, func() bool {
				state, known := a.pods.workers.Known(pod.UID)
				said, _ := a.pods.statuses.Status(pod.UID)
				return !known || state >= podworker.Terminating || !d.Unready(pod.UID) || !status.IsReady(&said)
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// soon waits until something is so that comes about by itself.
func soon(ctx context.Context, so func() bool) error {
	for !so() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
