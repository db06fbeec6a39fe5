package eviction

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// An Explanation is why a pod is evicted, for machines: it goes into the event as
// JSON, and comes back by [ParseExplanation] (F-15).
type Explanation struct {
	// The threshold, and what was observed.
	Signal      Signal    `json:"signal"`
	Threshold   string    `json:"threshold"`            // as it was set: "100Mi", "10%"
	MinReclaim  string    `json:"minReclaim,omitempty"` // as it was set
	GracePeriod string    `json:"gracePeriod,omitempty"`
	Since       time.Time `json:"since"` // when the threshold was first met
	Available   int64     `json:"available"`
	Capacity    int64     `json:"capacity"`
	Deficit     int64     `json:"deficit"` // what had to be freed
	ObservedAt  time.Time `json:"observedAt,omitzero"`

	// Place of the pod in the ranking, from 1, of so many.
	Place int `json:"place"`
	Of    int `json:"of"`

	// Victim and RunnerUp, and what put the one before the other. No RunnerUp:
	// there was no other pod.
	Victim   Ranked     `json:"victim"`
	RunnerUp *Ranked    `json:"runnerUp,omitempty"`
	Decided  Comparator `json:"decided,omitempty"`

	// PassedOver came before it, and was refused.
	PassedOver []Ranked `json:"passedOver,omitempty"`
}

// Ranked is a pod with what its place was decided by.
type Ranked struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Rank
}

// maxPassedOver bounds an annotation, not what is true.
const maxPassedOver = 10

func ranked(r Rank) Ranked {
	out := Ranked{Namespace: r.Pod.Namespace, Name: r.Pod.Name, UID: string(r.Pod.UID), Rank: r}
	out.Pod = nil
	return out
}

func (p *Plan) explain(place int) *Explanation {
	c := p.Chosen
	e := &Explanation{
		Signal: c.Threshold.Signal, Threshold: c.Threshold.Value.String(), Since: c.Since.UTC().Round(0),
		Available: c.Available, Capacity: c.Capacity, Deficit: c.Deficit, ObservedAt: c.At.UTC().Round(0),
		Place: place + 1, Of: len(p.Ranking), Victim: ranked(p.Ranking[place]), Decided: p.Ranking[place].Decided,
	}
	if c.Threshold.MinReclaim != nil {
		e.MinReclaim = c.Threshold.MinReclaim.String()
	}
	if !c.Threshold.Hard() {
		e.GracePeriod = c.Threshold.GracePeriod.String()
	}
	if place+1 < len(p.Ranking) {
		next := ranked(p.Ranking[place+1])
		e.RunnerUp = &next
	}
	for i := range p.Ranking[:place] {
		if r := p.Ranking[i]; r.Refused != "" && len(e.PassedOver) < maxPassedOver {
			e.PassedOver = append(e.PassedOver, ranked(r))
		}
	}
	return e
}

func (e *Explanation) encode() (string, error) {
	text, err := json.Marshal(e)
	return string(text), err
}

// ParseExplanation reads the annotation [AnnotationExplanation] of an event.
func ParseExplanation(text string) (*Explanation, error) {
	e := new(Explanation)
	if err := json.Unmarshal([]byte(text), e); err != nil {
		return nil, fmt.Errorf("eviction: an explanation: %w", err)
	}
	return e, nil
}

// String says it in a sentence, for people.
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
		fmt.Fprintf(&b, ", before %s/%s by %s", e.RunnerUp.Namespace, e.RunnerUp.Name, e.Decided)
	}
	for _, r := range e.PassedOver {
		fmt.Fprintf(&b, "; %s/%s was passed over: %s", r.Namespace, r.Name, r.Refused)
	}
	return b.String()
}
