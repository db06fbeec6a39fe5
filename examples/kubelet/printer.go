package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// A printer is a status.StatusSink for people: one line for each change.
type printer struct {
	mu   sync.Mutex // guards the fields below
	w    io.Writer
	last map[types.UID]v1.PodStatus
}

// UpdatePodStatus implements status.StatusSink.
func (p *printer) UpdatePodStatus(_ context.Context, pod *v1.Pod, s v1.PodStatus) error {
	p.mu.Lock()
	old := p.last[pod.UID]
	if p.last == nil {
		p.last = map[types.UID]v1.PodStatus{}
	}
	p.last[pod.UID] = s
	p.mu.Unlock()
	for _, change := range status.Describe(&old, &s) {
		p.line(pod.Name, change)
	}
	return nil
}

// DeletePod implements status.StatusSink.
func (p *printer) DeletePod(_ context.Context, pod *v1.Pod) error {
	p.mu.Lock()
	delete(p.last, pod.UID)
	p.mu.Unlock()
	p.line(pod.Name, "gone")
	return nil
}

// untold are the warnings that say nothing new: these failures show in the
// status, and are tried again and again.
var untold = []string{"BackOff", "Failed", "InspectFailed", "ErrImageNeverPull"}

// event shows warnings; what went well shows in the status.
func (p *printer) event(e runtime.Event) {
	if e.Type != v1.EventTypeWarning || slices.Contains(untold, e.Reason) {
		return
	}
	p.line(e.Object.Name, fmt.Sprintf("%s: %s", e.Reason, e.Message))
}

func (p *printer) problem(problem podsource.Problem) {
	what := "not used"
	if !problem.LastGood.IsZero() {
		what = "its last good version stays"
	}
	p.line("manifests", fmt.Sprintf("%v; %s", problem.Err, what))
}

func (p *printer) mended(path string) { p.line("manifests", path+" is in order") }

// line prints what happened to whom, with the time of day.
func (p *printer) line(who, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "%s %-24s %s\n", time.Now().Format("15:04:05.000"), who, forTerminal(what))
}

// forTerminal is a text for people in which nothing is a command to their terminal, and
// further lines don't look like lines of the agent: containers say some of it, as what
// their probes print.
func forTerminal(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n':
			b.WriteString("\n    ")
		case r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}
