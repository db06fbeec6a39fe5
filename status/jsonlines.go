package status

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A JSONLines sink writes one line of JSON per change, which [Line] reads
// back. Make one with [NewJSONLines].
type JSONLines struct {
	mu sync.Mutex // guards w: lines are whole
	w  io.Writer
}

// A Line is what a JSONLines sink writes of one change. Names are there for
// people and for jq.
type Line struct {
	Time      time.Time   `json:"time"` // when it was written
	Namespace string      `json:"namespace"`
	Name      string      `json:"name"`
	UID       types.UID   `json:"uid"`
	Phase     v1.PodPhase `json:"phase,omitempty"`

	// Deleted: nothing of the pod is left. Status is then nil.
	Deleted bool          `json:"deleted,omitempty"`
	Status  *v1.PodStatus `json:"status,omitempty"`
}

// NewJSONLines returns a sink that makes one call of w.Write per line. After a
// failed write the line is written again, so that a half-written line may be
// followed by the whole one.
func NewJSONLines(w io.Writer) *JSONLines { return &JSONLines{w: w} }

// UpdatePodStatus writes a line.
func (s *JSONLines) UpdatePodStatus(_ context.Context, pod *v1.Pod, status v1.PodStatus) error {
	return s.write(pod, Line{Phase: status.Phase, Status: &status})
}

// DeletePod writes a line with "deleted": true.
func (s *JSONLines) DeletePod(_ context.Context, pod *v1.Pod) error {
	return s.write(pod, Line{Deleted: true})
}

func (s *JSONLines) write(pod *v1.Pod, line Line) error {
	line.Time = time.Now().UTC()
	line.Namespace, line.Name, line.UID = pod.Namespace, pod.Name, pod.UID
	b, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("status: encode pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.w.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("status: write pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
