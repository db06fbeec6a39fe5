package hollow

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/kube/fakenode"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// Rules are behaviors of containers by selectors, and those of kwok's Stages. Use [ParseRules].
type Rules struct {
	rules  []rule
	stages []stage

	// Warnings name the parts of Stages that have no effect, by the name of the Stage.
	Warnings []string
}

// A rule is the behavior of the containers that it selects. Patterns have the syntax of path.Match;
// an empty list matches everything.
type rule struct {
	Namespaces []string `json:"namespaces"`
	Labels     string   `json:"labels"` // of the pod
	Images     []string `json:"images"`
	Containers []string `json:"containers"`
	Behavior   string   `json:"behavior"`

	labels   labels.Selector
	behavior fake.Behavior
}

// ParseRules parses the YAML documents of a file of behaviors:
//
//	rules:
//	- namespaces: [load-*]            # patterns of path.Match; all conditions must hold
//	  labels: app=web,tier notin (db) # of the pod
//	  images: ["nginx:*"]
//	  containers: [main]
//	  behavior: ready=2s,cpu=250m,memory=64Mi # see package runtime/fake
//
// The first matching rule applies to a container. A document with "kind: Stage" is one of kwok;
// Stages apply to pods without a matching rule: their delays until a pod runs, is ready,
// completes or fails, and until a deleted pod is removed, together with exit codes and reasons.
// What else they specify is in Warnings. It returns all errors, with the number of the document.
func ParseRules(text string) (*Rules, error) {
	r := &Rules{}
	var failed error
	for i, doc := range strings.Split("\n"+text, "\n---") {
		if err := r.parse([]byte(doc)); err != nil {
			failed = errors.Join(failed, fmt.Errorf("hollow: document %d: %w", i+1, err))
		}
	}
	if failed != nil {
		return nil, failed
	}
	slices.Sort(r.Warnings)
	return r, nil
}

func (r *Rules) parse(doc []byte) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(doc, &kind); err != nil {
		return err
	}
	switch kind.Kind {
	case "":
		var file struct {
			Rules []rule `json:"rules"`
		}
		if err := yaml.UnmarshalStrict(doc, &file); err != nil {
			return err
		}
		for i := range file.Rules {
			if err := file.Rules[i].complete(); err != nil {
				return fmt.Errorf("rules[%d]: %w", i, err)
			}
		}
		r.rules = append(r.rules, file.Rules...)
		return nil
	case "Stage":
		return r.parseStage(doc)
	}
	return fmt.Errorf("kind %q: want rules or a Stage of kwok", kind.Kind)
}

func (r *rule) complete() (err error) {
	if r.labels, err = labels.Parse(r.Labels); err != nil {
		return fmt.Errorf("labels: %w", err)
	}
	for _, list := range [][]string{r.Namespaces, r.Images, r.Containers} {
		for _, pattern := range list {
			if _, err := path.Match(pattern, ""); err != nil {
				return fmt.Errorf("%q: %w", pattern, err)
			}
		}
	}
	if r.behavior, err = fake.ParseBehavior(r.Behavior); err == nil {
		err = fakenode.CheckBehavior(r.behavior)
	}
	if err != nil {
		return fmt.Errorf("behavior: %w", err)
	}
	return nil
}

// matches reports whether the rule selects a container.
func (r *rule) matches(pod *v1.Pod, c *v1.Container) bool {
	return matchesAny(r.Namespaces, pod.Namespace) && r.labels.Matches(labels.Set(pod.Labels)) &&
		matchesAny(r.Images, c.Image) && matchesAny(r.Containers, c.Name)
}

func matchesAny(patterns []string, value string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, _ := path.Match(pattern, value) // complete has checked the pattern
		return ok
	})
}

// Behavior returns the behavior of a container; false if none is specified. Its signature is
// that of Behave in package fakenode's Config.
func (r *Rules) Behavior(pod *v1.Pod, c *v1.Container) (fake.Behavior, bool) {
	for i := range r.rules {
		if r.rules[i].matches(pod, c) {
			return r.rules[i].behavior, true
		}
	}
	return r.staged(pod, c)
}

// after returns a function that calls first, which may be nil, and then Behavior.
func (r *Rules) after(first func(*v1.Pod, *v1.Container) (fake.Behavior, bool)) func(*v1.Pod, *v1.Container) (fake.Behavior, bool) {
	if first == nil {
		return r.Behavior
	}
	return func(pod *v1.Pod, c *v1.Container) (fake.Behavior, bool) {
		if b, ok := first(pod, c); ok {
			return b, true
		}
		return r.Behavior(pod, c)
	}
}
