package printer

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/terminal"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// A Printer is a [status.Sink] that prints a line for each change of a pod's status, for
// users of a terminal:
//
//	15:04:05.000 web                      container server: running
//
// Control characters are quoted, and further lines of a text are indented. Errors of W
// are ignored. Safe for concurrent use; a call blocks while W does.
type Printer struct {
	// W is written one line at a time. Required. Must not be changed.
	W io.Writer

	mu   sync.Mutex // guards the field below, and writes to W
	last map[types.UID]v1.PodStatus
}

// UpdatePodStatus implements status.Sink. It prints what differs from the status before.
func (p *Printer) UpdatePodStatus(_ context.Context, pod *v1.Pod, s v1.PodStatus) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.last[pod.UID]
	if p.last == nil {
		p.last = map[types.UID]v1.PodStatus{}
	}
	p.last[pod.UID] = s
	for _, change := range status.Describe(&old, &s) {
		p.printLocked(pod.Name, change)
	}
	return nil
}

// DeletePod implements status.Sink.
func (p *Printer) DeletePod(_ context.Context, pod *v1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, pod.UID)
	p.printLocked(pod.Name, "deleted")
	return nil
}

// inStatus are the reasons of warnings that the status of the pod contains as well.
var inStatus = []string{"BackOff", "Failed", "InspectFailed", "ErrImageNeverPull"}

// Record prints a warning, unless the status of the pod contains it as well; it is a
// Record function of an agent.
func (p *Printer) Record(e runtime.Event) {
	if e.Type == v1.EventTypeWarning && !slices.Contains(inStatus, e.Reason) {
		p.Printf(e.Object.Name, "%s: %s", e.Reason, e.Message)
	}
}

// Printf prints a line about subject: the name of a pod, or a part of the program.
func (p *Printer) Printf(subject, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printLocked(subject, fmt.Sprintf(format, args...))
}

func (p *Printer) printLocked(subject, text string) {
	fmt.Fprintf(p.W, "%s %-24s %s\n", time.Now().Format("15:04:05.000"), terminal.Escape(subject), terminal.Escape(text))
}
