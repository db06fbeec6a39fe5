package labenv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// A Process is a kubelet or the complete node.
type Process struct {
	Exited <-chan struct{} // closed when the process has exited

	cmd *exec.Cmd
	log string
}

// Start starts a program, whose output is appended to a log file.
func Start(binary string, args []string, log string) (*Process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	exited := make(chan struct{})
	p := &Process{Exited: exited, cmd: exec.Command(binary, args...), log: log}
	p.cmd.Stdout, p.cmd.Stderr = output, output
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(exited)
		_ = p.cmd.Wait() // its log has the error
	}()
	return p, nil
}

// PID returns the ID of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Running reports whether the process has not exited yet. A nil Process is not running.
func (p *Process) Running() bool {
	if p == nil {
		return false
	}
	select {
	case <-p.Exited:
		return false
	default:
		return true
	}
}

// Kill sends SIGKILL and returns when the process has exited.
func (p *Process) Kill() error {
	if !p.Running() {
		return nil
	}
	err := p.cmd.Process.Kill()
	<-p.Exited
	return err
}

// Stop sends SIGTERM, and after a time SIGKILL, which is an error. Pods keep running.
func (p *Process) Stop(limit time.Duration) error {
	if !p.Running() {
		return nil
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have exited since
	select {
	case <-p.Exited:
		return nil
	case <-time.After(lab.Limit(limit)):
		return errors.Join(fmt.Errorf("the process does not exit within %v of SIGTERM", limit), p.Kill())
	}
}

// Tail returns the last lines of the log.
func (p *Process) Tail(lines int) string { return Tail(p.log, lines) }

// Tail returns the last lines of a log file.
func Tail(log string, lines int) string {
	data, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// Until calls check until it returns nil, ctx is done, or the limit (see lab.Limit) has passed.
func Until(ctx context.Context, what string, limit time.Duration, check func() error) error {
	return (*Process)(nil).Until(ctx, what, limit, check)
}

// Until is the function Until; it also returns if the process exits.
func (p *Process) Until(ctx context.Context, what string, limit time.Duration, check func() error) error {
	ctx, cancel := context.WithTimeout(ctx, lab.Limit(limit))
	defer cancel()
	var exited <-chan struct{}
	if p != nil {
		exited = p.Exited
	}
	for {
		err := check()
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("%s: the process has exited: %s", what, p.Tail(20))
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", what, ctx.Err(), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// UntilReady waits until a node is ready.
func (p *Process) UntilReady(ctx context.Context, api kubernetes.Interface, node string) error {
	return p.Until(ctx, "wait for the node", 3*time.Minute, func() error { return NodeReady(ctx, api, node) })
}

// NodeReady returns an error if a node is not ready.
func NodeReady(ctx context.Context, api kubernetes.Interface, name string) error {
	node, err := api.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1.NodeReady && c.Status != v1.ConditionTrue {
			return fmt.Errorf("the node is not ready: %s: %s", c.Reason, c.Message)
		} else if c.Type == v1.NodeReady {
			return nil
		}
	}
	return errors.New("the node has no condition Ready")
}
