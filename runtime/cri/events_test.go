package cri_test

import (
	"fmt"
	"sync"

	"github.com/kubeparts/kubeparts/runtime"
)

// events records the events passed to Config.Record.
type events struct {
	mu   sync.Mutex
	list []runtime.Event
}

func (e *events) record(ev runtime.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
}

// take returns the events since the last take, as "Type Reason path: message".
func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var lines []string
	for _, ev := range e.list {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", ev.Type, ev.Reason, ev.Object.FieldPath, ev.Message))
	}
	e.list = nil
	return lines
}
