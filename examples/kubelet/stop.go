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

	core "github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/podworker"
)

const (
	// flushTimeout bounds the delivery of the last statuses if pods keep running.
	flushTimeout = 5 * time.Second

	// componentTimeout bounds the return of the components after their context has
	// ended.
	componentTimeout = 15 * time.Second
)

// An ending stops the agent, and before that all pods if they are not to outlive it.
type ending struct {
	*assembly
	agent   *core.Agent
	leaving *departure
}

var errLeft = errors.New("stopped before its pods; start it again and it takes them over")

// untilStopped waits for a signal and then, unless the pods are to be left running,
// terminates them; a second signal leaves those that still run.
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
		_ = e.agent.Status().Flush(flush) // the next agent delivers what is not delivered now
		return nil
	}
	left := slices.DeleteFunc(e.pods.workers.States(), func(s podworker.PodState) bool { return s.State == podworker.Finished })
	e.say(fmt.Sprintf("stopping %d pods; Ctrl-C again leaves what still runs", len(left)))
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-signals:
			cancel(errLeft)
		case <-ctx.Done():
		}
	}()
	if err := e.agent.Drain(ctx); err != nil {
		return err
	}
	e.say("all pods have stopped")
	return nil
}
