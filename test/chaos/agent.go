package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An agent is a process of examples/kubelet.
type agent struct {
	binary string
	args   []string
	addr   string // of /healthz
	log    string // file
	record string // directory; empty: nothing is recorded

	launches int // processes that were started
	cmd      *exec.Cmd
	exited   chan struct{}
}

// launch starts the agent.
func (a *agent) launch() error {
	log, err := os.OpenFile(a.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	a.launches++
	cmd := exec.Command(a.binary, a.arguments()...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	a.cmd, a.exited = cmd, exited
	go func() {
		defer close(exited)
		_ = cmd.Wait() // its log has the error
	}()
	return nil
}

// arguments returns the arguments of the next process. Each has a directory of its own: the oldest recordings of one are removed.
func (a *agent) arguments() []string {
	if a.record == "" {
		return a.args
	}
	return append(slices.Clone(a.args), "--record-dir="+filepath.Join(a.record, fmt.Sprintf("agent-%03d", a.launches)))
}

// await returns when the agent serves, or an error if it terminates first.
func (a *agent) await(ctx context.Context) error {
	for {
		if _, err := a.get(ctx, "/healthz"); err == nil || errors.As(err, new(unwell)) {
			return nil
		}
		select {
		case <-a.exited:
			return fmt.Errorf("the agent ended: %s", a.tail(3))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// An unwell is an agent's report that it is not healthy.
type unwell string

func (u unwell) Error() string { return "the agent is not well: " + string(u) }

func (a *agent) running() bool {
	if a.exited == nil {
		return false
	}
	select {
	case <-a.exited:
		return false
	default:
		return true
	}
}

// kill sends SIGKILL.
func (a *agent) kill() error {
	if !a.running() {
		return nil
	}
	err := a.cmd.Process.Kill()
	<-a.exited
	return err
}

// interrupt sends SIGINT, and SIGKILL after a minute.
func (a *agent) interrupt() error {
	if !a.running() {
		return nil
	}
	if err := a.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	select {
	case <-a.exited:
		return nil
	case <-time.After(time.Minute):
		return errors.Join(errors.New("the agent does not end within a minute of Ctrl-C"), a.kill())
	}
}

// get requests a page of the agent.
func (a *agent) get(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.addr+path, nil)
	if err != nil {
		return "", err
	}
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = unwell(strings.TrimSpace(string(body)))
	}
	return string(body), err
}

// tail returns the last lines of the log of all agents.
func (a *agent) tail(lines int) string {
	data, err := os.ReadFile(a.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// logContains reports whether the log of the agents contains text.
func (a *agent) logContains(text string) bool {
	data, _ := os.ReadFile(a.log)
	return strings.Contains(string(data), text)
}

// freeAddr returns an unused loopback address.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
