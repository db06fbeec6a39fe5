package hollow

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// A Selector selects Node objects.
type Selector struct {
	// Annotations and Labels are selectors in the syntax of Kubernetes' label selectors, such
	// as "type=kwok,zone in (a, b)". A node is selected by either. If both are empty, they are
	// those of kwok's users: the annotation kwok.x-k8s.io/node=fake, or the label type=kwok.
	Annotations, Labels string
}

// The selectors of nodes that are created for kwok.
const (
	kwokAnnotation = "kwok.x-k8s.io/node=fake"
	kwokLabel      = "type=kwok"
)

// matcher returns a function that reports whether a node is selected, or an error that names
// the invalid field.
func (s Selector) matcher() (func(*v1.Node) bool, error) {
	if s == (Selector{}) {
		s = Selector{Annotations: kwokAnnotation, Labels: kwokLabel}
	}
	annotations, err := parse("Annotations", s.Annotations)
	if err != nil {
		return nil, err
	}
	byLabels, err := parse("Labels", s.Labels)
	if err != nil {
		return nil, err
	}
	return func(n *v1.Node) bool {
		return annotations.Matches(labels.Set(n.Annotations)) || byLabels.Matches(labels.Set(n.Labels))
	}, nil
}

// parse parses a selector. An empty one selects nothing.
func parse(field, text string) (labels.Selector, error) {
	if text == "" {
		return labels.Nothing(), nil
	}
	s, err := labels.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("hollow: Config.Select.%s: %w", field, err)
	}
	return s, nil
}
