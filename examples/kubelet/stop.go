package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/status"
)

const (
	// meetTimeout bounds the wait for the first relist and for the sources: pods
	// that are not listed yet cannot be stopped.
	meetTimeout = 5 * time.Second

	// flushTimeout bounds the delivery of the last statuses.
	flushTimeout = 5 * time.Second

	// stopSlack is how long the agent, while it stops all pods, waits for a runtime
	// that does not answer, and for a pod to terminate beyond its grace period.
	stopSlack = 30 * time.Second

	// componentTimeout bounds the return of the components after their context has
	// ended.
	componentTimeout = 15 * time.Second
)

// An ending stops the agent, and before that all pods if they are not to outlive it.
type ending struct {
	*assembly
	statuses *status.Manager

	leaving    *departure
	seen       func() error // returns nil after the first successful relist
	runtime    func() error // returns an error while the runtime does not answer
	noMorePods func()       // stops the sources, and returns when they have stopped
}

var errLeft = errors.New("stopped before its pods; start it again and it takes them over")

// untilStopped waits for a signal and then, unless the pods are to be left
// running, stops them all; a second signal leaves at once what still runs.
func (e *ending) untilStopped(ctx context.Context) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt)
	if !e.leaving.byTerm { // else a TERM says that the machine stops
		signal.Notify(signals, syscall.SIGTERM)
	}
	defer signal.Stop(signals)
	select {
	case <-ctx.Done():
		return nil
	case <-e.leaving.over:
		e.notify(daemon.SdNotifyStopping)
		e.say("stopping, as the machine does")
		return nil
	case <-signals:
	}
	e.notify(daemon.SdNotifyStopping)
	if !e.opts.stopPods {
		e.say("stopping; the pods are left running")
		flush, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		_ = e.statuses.Flush(flush) // what is not told now, the next agent tells
		return nil
	}
	if err := e.stopPods(ctx, signals); err != nil {
		return err
	}
	flush, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := e.statuses.Flush(flush); err != nil {
		return fmt.Errorf("last statuses: %w", err)
	}
	e.say("all pods have stopped")
	return nil
}

// stopPods stops all pods at once, and returns when none runs.
func (e *ending) stopPods(ctx context.Context, signals <-chan os.Signal) error {
	const tick = 10 * time.Millisecond
	// A pod that was not met yet could not be stopped: one that an earlier
	// agent left, or whose manifest is just being read.
	for late := time.After(meetTimeout); !e.pods.loop.Synced() || e.seen() != nil; {
		select {
		case <-time.After(tick):
			continue
		case <-signals:
			return errLeft
		case <-late:
		}
		break
	}
	e.noMorePods()
	limit := stopLimit{progress: time.Now()}
	for told := false; ; told = true {
		// What is to be started over, or is an orphan, shows itself now.
		e.pods.loop.Settle()
		e.pods.loop.Sweep()
		left := slices.DeleteFunc(e.pods.workers.States(), func(s podworker.PodState) bool { return s.State == podworker.Finished })
		if !told {
			e.say(fmt.Sprintf("stopping %d pods; Ctrl-C again leaves what still runs", len(left)))
		}
		if len(left) == 0 {
			return nil
		}
		if len(left) != limit.left {
			limit.left, limit.progress = len(left), time.Now()
		}
		limit.grace = longestGrace(left)
		var stopped []<-chan podworker.Outcome
		for _, s := range left {
			stopped = append(stopped, e.pods.workers.Kill(s.UID, podworker.KillOptions{}))
		}
		for _, done := range stopped {
			if err := e.awaitStopped(done, &limit, signals); err != nil {
				return err
			}
		}
		<-time.After(tick) // stopped pods are being cleaned up
	}
}

// awaitStopped returns when a pod has stopped, or an error when the agent gives up.
func (e *ending) awaitStopped(done <-chan podworker.Outcome, limit *stopLimit, signals <-chan os.Signal) error {
	check := time.NewTicker(time.Second)
	defer check.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-signals:
			return errLeft
		case now := <-check.C:
			limit.observe(now, e.runtime())
			if err := limit.exceeded(now); err != nil {
				return err
			}
		}
	}
}
