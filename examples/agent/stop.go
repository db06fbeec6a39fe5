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

// How long an agent that stops waits to know what there is to be stopped, and
// for its last words to be taken.
const (
	meetTimeout  = 5 * time.Second
	flushTimeout = 5 * time.Second
)

// An ending is what it takes to end with nothing left running.
type ending struct {
	*assembly
	statuses *status.Manager

	leaving    *departure
	seen       func() error // nil once the runtime was looked at
	noMorePods func()       // ends the sources, and returns when they have
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
	if e.opts.leave {
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
		var stopped []<-chan podworker.Outcome
		for _, s := range left {
			stopped = append(stopped, e.pods.workers.Kill(s.UID, podworker.KillOptions{}))
		}
		for _, done := range stopped {
			select {
			case <-done:
			case <-signals:
				return errLeft
			}
		}
		<-time.After(tick) // what has stopped is being cleaned up
	}
}
