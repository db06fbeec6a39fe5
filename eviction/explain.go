package eviction

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// An Explanation is the machine-readable reason why a pod is evicted. The event of the
// eviction has it as JSON, in the annotation "eviction.kubeparts.io/explanation".
type Explanation struct {
	// The threshold that the pod is evicted for, and the measurement that met it. Available,
	// Capacity and Deficit are in bytes, inodes or processes.
	Signal      Signal    `json:"signal"`
	Threshold   string    `json:"threshold"`            // as configured: "100Mi", "10%"
	MinReclaim  string    `json:"minReclaim,omitempty"` // as configured
	GracePeriod string    `json:"gracePeriod,omitempty"`
	Since       time.Time `json:"since"` // when the threshold was first met
	Available   int64     `json:"available"`
	Capacity    int64     `json:"capacity"`
	Deficit     int64     `json:"deficit"` // the amount that had to be reclaimed
	ObservedAt  time.Time `json:"observedAt,omitzero"`

	// Place is the pod's place in the ranking, from 1; Of is the length of the ranking.
	Place int `json:"place"`
	Of    int `json:"of"`

	// Victim is the evicted pod and RunnerUp the next in the ranking, nil if there is none.
	// RankReason is the reason why Victim precedes it. Their Pod fields are nil.
	Victim     Candidate  `json:"victim"`
	RunnerUp   *Candidate `json:"runnerUp,omitempty"`
	RankReason string     `json:"rankReason,omitempty"`

	// PassedOver are exempt pods that preceded Victim, at most ten.
	PassedOver []Candidate `json:"passedOver,omitempty"`
}

// withoutPod returns c without the pod, which the explanation must not keep in memory.
func (c Candidate) withoutPod() Candidate {
	c.Pod = nil
	return c
}

// maxPassedOver bounds the size of the annotation.
const maxPassedOver = 10

func (p *Plan) explain(i int) *Explanation {
	c := p.Chosen
	e := &Explanation{
		Signal: c.Threshold.Signal, Threshold: c.Threshold.Value.String(), Since: c.Since.UTC().Round(0),
		Available: c.Available, Capacity: c.Capacity, Deficit: c.Deficit, ObservedAt: c.At.UTC().Round(0),
		Place: i + 1, Of: len(p.Ranking), Victim: p.Ranking[i].withoutPod(), RankReason: p.Ranking[i].RankReason,
	}
	if c.Threshold.MinReclaim != nil {
		e.MinReclaim = c.Threshold.MinReclaim.String()
	}
	if !c.Threshold.Hard() {
		e.GracePeriod = c.Threshold.GracePeriod.String()
	}
	if i+1 < len(p.Ranking) {
		next := p.Ranking[i+1].withoutPod()
		e.RunnerUp = &next
	}
	for j := range p.Ranking[:i] {
		if r := p.Ranking[j]; r.Exempt != "" && len(e.PassedOver) < maxPassedOver {
			e.PassedOver = append(e.PassedOver, r.withoutPod())
		}
	}
	return e
}

func (e *Explanation) encode() (string, error) {
	text, err := json.Marshal(e)
	return string(text), err
}

// String returns the explanation as a sentence.
func (e *Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s was %d of %d, below %s", e.Signal, e.Available, e.Capacity, e.Threshold)
	if e.MinReclaim != "" {
		fmt.Fprintf(&b, " + %s", e.MinReclaim)
	}
	if e.GracePeriod != "" {
		fmt.Fprintf(&b, " for %s", e.GracePeriod)
	}
	fmt.Fprintf(&b, "; %s/%s was place %d of %d", e.Victim.Namespace, e.Victim.Name, e.Place, e.Of)
	if e.RunnerUp != nil {
		fmt.Fprintf(&b, ", before %s/%s by %s", e.RunnerUp.Namespace, e.RunnerUp.Name, e.RankReason)
	}
	for _, c := range e.PassedOver {
		fmt.Fprintf(&b, "; %s/%s was passed over: %s", c.Namespace, c.Name, c.Exempt)
	}
	return b.String()
}
