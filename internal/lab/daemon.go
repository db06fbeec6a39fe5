package lab

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-client/pkg"
)

// patience is the timeout of calls to a daemon on a busy machine.
const patience = time.Minute

// A Daemon is a private containerd. Its methods fail the test on errors; they must be
// called on the test's goroutine.
type Daemon struct {
	// Endpoint is the CRI socket: "unix:///tmp/...".
	Endpoint string

	// Version is the version that the binary prints, without a "v": "1.6.20".
	Version string

	// Metrics is the URL of its metrics; empty without ContainerdConfig.Metrics.
	Metrics string

	t      testing.TB
	layout layout
	child  child
}

// Start starts the daemon after a Kill, on the same root and state, and waits
// until it is ready. Starting a daemon that runs fails the test.
func (d *Daemon) Start() {
	d.t.Helper()
	d.must("start", d.start())
}

func (d *Daemon) start() error {
	if d.Running() {
		return errors.New("it runs already")
	}
	if err := d.child.start(); err != nil {
		return err
	}
	return d.await("CRI readiness", func(ctx context.Context) error { return ready(ctx, d.Endpoint) })
}

// await calls check until it returns nil. It returns check's last error when the daemon
// exits or after patience.
func (d *Daemon) await(what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.t.Context()), Limit(patience))
	defer cancel()
	return d.child.await(ctx, what, check)
}

// dial connects to the runtime service. The caller must close it.
func dial(ctx context.Context, endpoint string) (internalapi.RuntimeService, error) {
	return cri.NewRemoteRuntimeServiceBuilder().WithEndpoint(endpoint).WithConnectionTimeout(Limit(90 * time.Second)).Build(ctx)
}

// ready returns nil when every condition that the runtime reports is true.
func ready(ctx context.Context, endpoint string) error {
	rt, err := dial(ctx, endpoint)
	if err != nil {
		return err
	}
	defer rt.Close(ctx)
	status, err := rt.Status(ctx, false)
	if err != nil {
		return err
	}
	for _, c := range status.GetStatus().GetConditions() {
		if !c.Status && (c.Type == runtimeapi.RuntimeReady || c.Type == runtimeapi.NetworkReady) {
			return fmt.Errorf("%s is false: %s: %s", c.Type, c.Reason, c.Message)
		}
	}
	return nil
}

// Running reports whether the daemon's process exists, also while it is paused.
func (d *Daemon) Running() bool { return d.child.running() }

// PID returns the process ID of the daemon; 0: it does not run.
func (d *Daemon) PID() int {
	if !d.Running() {
		return 0
	}
	return d.child.cmd.Process.Pid
}

// Kill sends SIGKILL to the daemon, paused or not, and waits until it has exited. Its
// shims and containers keep running, as after a crash.
func (d *Daemon) Kill() {
	d.t.Helper()
	d.must("kill", d.child.kill())
}

// Restart is Kill and Start.
func (d *Daemon) Restart() {
	d.t.Helper()
	d.Kill()
	d.Start()
}

// Pause stops the daemon with SIGSTOP: its socket accepts connections that
// get no response, as when a daemon hangs. Containers keep running.
func (d *Daemon) Pause() {
	d.t.Helper()
	if !d.Running() {
		d.must("pause", errors.New("it does not run"))
	}
	d.must("pause", suspend(d.child.cmd.Process))
}

// Resume ends a Pause.
func (d *Daemon) Resume() {
	d.t.Helper()
	if !d.Running() {
		d.must("resume", errors.New("it does not run"))
	}
	d.must("resume", resume(d.child.cmd.Process))
}

// Log returns the last lines of the daemon's output, of all its starts.
func (d *Daemon) Log(lines int) string { return d.child.tail(lines) }

// must fails the test with the end of the daemon's log. It must not be used in cleanups,
// which have to continue after an error.
func (d *Daemon) must(act string, err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatalf("lab: containerd %s: %s: %v\n%s", d.Version, act, err, d.Log(20))
	}
}

// cleanup first removes the pods through the daemon if it still runs, so that the network
// plugins release their resources. Then it sweeps, which works without the daemon.
func (d *Daemon) cleanup() {
	if d.t.Failed() {
		d.t.Logf("lab: the last warnings and errors in containerd's log:\n%s", d.child.problems(10))
	}
	if d.Running() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(d.t.Context()), Limit(90*time.Second))
		defer cancel()
		err := errors.Join(resume(d.child.cmd.Process), removePods(ctx, d.Endpoint))
		if err != nil {
			d.t.Logf("lab: take the pods down: %v", err)
		}
	}
	if err := errors.Join(d.child.kill(), sweep(d.layout.dir)); err != nil {
		d.t.Errorf("lab: clean up: %v", err)
	}
}

func removePods(ctx context.Context, endpoint string) error {
	rt, err := dial(ctx, endpoint)
	if err != nil {
		return err
	}
	defer rt.Close(ctx)
	sandboxes, err := rt.ListPodSandbox(ctx, nil)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range sandboxes {
		errs = append(errs, rt.StopPodSandbox(ctx, s.Id), rt.RemovePodSandbox(ctx, s.Id))
	}
	return errors.Join(errs...)
}

// Dir returns the directory of all files of the daemon. Its shims and containers have it in
// their arguments or mounts.
func (d *Daemon) Dir() string { return d.layout.dir }
