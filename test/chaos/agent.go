package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// An agent is a process of examples/kubelet.
type agent struct {
	binary string
	args   []string
	addr   string // of /healthz
	log    string // file
	record string // directory; empty: nothing is recorded

	launches int // processes that were started
	process  *labenv.Process
}

// launch starts the agent.
func (a *agent) launch() error {
	a.launches++
	process, err := labenv.Start(a.binary, a.arguments(), a.log)
	if err != nil {
		return err
	}
	a.process = process
	return nil
}

// arguments returns the arguments of the next process. Each has a directory of its own:
// the oldest recordings of one are removed.
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
		case <-a.process.Exited:
			return fmt.Errorf("the agent has exited: %s", labenv.Tail(a.log, 3))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// An unwell is an agent's report that it is not healthy.
type unwell string

func (u unwell) Error() string { return "the agent is not well: " + string(u) }

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

// logContains reports whether the log of the agents contains text.
func (a *agent) logContains(text string) bool {
	data, _ := os.ReadFile(a.log)
	return strings.Contains(string(data), text)
}
