package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-client/pkg"
)

// patience is how long a daemon may take to answer, on a busy machine.
const patience = time.Minute

// A Daemon is a private containerd. Its methods fail the test when they cannot
// do their work; call them on the test's own goroutine.
type Daemon struct {
	// Endpoint is the CRI socket: "unix:///tmp/...".
	Endpoint string

	// Version is what the binary says of itself, without a "v": "1.6.20".
	Version string

	t      testing.TB
	layout layout
	binary string
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has been waited for; nil before the first start
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
	log, err := os.OpenFile(d.layout.logFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(d.binary, "--config", d.layout.configFile(),
		"--root", d.layout.root(), "--state", d.layout.state(), "--address", d.layout.socket())
	// The shim is looked for in PATH: the daemon's own has to come first.
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(d.binary)+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	d.cmd, d.exited = cmd, exited
	go func() {
		defer close(exited)
		cmd.Wait() // how it ended shows in its log; the tests end it by force
	}()
	return d.await("CRI readiness", func(ctx context.Context) error { return ready(ctx, d.Endpoint) })
}

// await calls check until it returns nil. It gives up when the daemon exits or
// patience ends, with check's last error.
func (d *Daemon) await(what string, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.t.Context()), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-d.exited:
			return fmt.Errorf("the daemon exited while the lab waited for %s: %w", what, err)
		case <-ctx.Done():
			return fmt.Errorf("no %s within %v: %w", what, patience, err)
		case <-tick.C:
		}
	}
}

// dial connects to the runtime service; what it returns has to be closed.
func dial(ctx context.Context, endpoint string) (internalapi.RuntimeService, error) {
	return cri.NewRemoteRuntimeServiceBuilder().WithEndpoint(endpoint).WithConnectionTimeout(10 * time.Second).Build(ctx)
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

// Running says whether the daemon's process exists; a paused one does.
func (d *Daemon) Running() bool {
	if d.exited == nil {
		return false
	}
	select {
	case <-d.exited:
		return false
	default:
		return true
	}
}

// PID is the daemon's process, 0 while none runs.
func (d *Daemon) PID() int {
	if !d.Running() {
		return 0
	}
	return d.cmd.Process.Pid
}

// Kill ends the daemon with SIGKILL, paused or not, and returns when it is
// gone. Its shims and containers live on, as they do when a daemon crashes.
func (d *Daemon) Kill() {
	d.t.Helper()
	d.must("kill", d.kill())
}

func (d *Daemon) kill() error {
	if !d.Running() {
		return nil
	}
	if err := d.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-d.exited
	return nil
}

// Restart is Kill and Start.
func (d *Daemon) Restart() {
	d.t.Helper()
	d.Kill()
	d.Start()
}

// Pause stops the daemon with SIGSTOP: its socket accepts connections that
// nobody answers, as when a daemon hangs. Containers run on.
func (d *Daemon) Pause() {
	d.t.Helper()
	if !d.Running() {
		d.must("pause", errors.New("it does not run"))
	}
	d.must("pause", suspend(d.cmd.Process))
}

// Resume ends a Pause.
func (d *Daemon) Resume() {
	d.t.Helper()
	if !d.Running() {
		d.must("resume", errors.New("it does not run"))
	}
	d.must("resume", resume(d.cmd.Process))
}

// Log returns the last lines of what the daemon wrote, over all its starts.
func (d *Daemon) Log(lines int) string {
	data, err := os.ReadFile(d.layout.logFile())
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// must fails the test with the end of the daemon's log. It is not used in
// cleanups, which have to go on.
func (d *Daemon) must(act string, err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatalf("lab: containerd %s: %s: %v\n%s", d.Version, act, err, d.Log(20))
	}
}

// cleanup first asks the daemon, if it still runs, to take its pods down, so
// that the network plugins undo what they did; then it sweeps, which needs
// nobody's cooperation.
func (d *Daemon) cleanup() {
	if d.t.Failed() {
		d.t.Logf("lab: the end of containerd's log:\n%s", d.Log(40))
	}
	if d.Running() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(d.t.Context()), 20*time.Second)
		defer cancel()
		err := errors.Join(resume(d.cmd.Process), removePods(ctx, d.Endpoint))
		if err != nil {
			d.t.Logf("lab: take the pods down: %v", err)
		}
	}
	if err := errors.Join(d.kill(), sweep(d.layout.dir)); err != nil {
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
