package hollow

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A stageObject is a Stage of kwok (kwok.x-k8s.io/v1alpha1), as far as it is read.
type stageObject struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		ResourceRef struct {
			Kind string `json:"kind"`
		} `json:"resourceRef"`
		Selector *struct {
			MatchLabels      map[string]string `json:"matchLabels"`
			MatchAnnotations map[string]string `json:"matchAnnotations"`
			MatchExpressions []expression      `json:"matchExpressions"`
		} `json:"selector"`
		Delay map[string]json.RawMessage `json:"delay"`
		Next  map[string]json.RawMessage `json:"next"`

		Weight, WeightFrom, ImmediateNextStage json.RawMessage
	} `json:"spec"`
}

type expression struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// A stage is the part of a behavior that a Stage specifies for the pods that it selects.
type stage struct {
	labels, annotations labels.Selector
	owners              []string // kinds of an owner of the pod; empty: all pods
	apply               func(*fake.Behavior)
}

// Patterns of the lines of a statusTemplate that are read. The whole is a Go template, whose
// output depends on the pod.
var (
	phasePattern  = regexp.MustCompile(`(?m)^\s*"?phase"?:\s*"?(\w+)`)
	codePattern   = regexp.MustCompile(`(?m)^\s*-?\s*"?exitCode"?:\s*(\d+)`)
	blockPattern  = regexp.MustCompile(`(?m)^\s*"?(waiting|terminated)"?:`)
	reasonPattern = regexp.MustCompile(`(?m)^\s*"?reason"?:\s*"?(\w+)`)
)

// parseStage parses a Stage. Parts without effect are added to Warnings.
func (r *Rules) parseStage(doc []byte) error {
	var o stageObject
	if err := yaml.Unmarshal(doc, &o); err != nil {
		return err
	}
	warn := func(format string, args ...any) {
		r.Warnings = append(r.Warnings, fmt.Sprintf("Stage %s: ", o.Metadata.Name)+fmt.Sprintf(format, args...))
	}
	if o.Spec.ResourceRef.Kind != "Pod" {
		warn("resourceRef.kind %s is ignored: only Stages of pods are read", o.Spec.ResourceRef.Kind)
		return nil
	}
	s := stage{labels: labels.Everything(), annotations: labels.Everything()}
	deleted := false
	if sel := o.Spec.Selector; sel != nil {
		s.labels, s.annotations = labels.SelectorFromSet(sel.MatchLabels), labels.SelectorFromSet(sel.MatchAnnotations)
		for _, e := range sel.MatchExpressions {
			if isDeletion(e) {
				deleted = deleted || e.Operator == "Exists"
			} else if !s.read(e) {
				warn("selector.matchExpressions: key %s with %s is ignored", e.Key, e.Operator)
			}
		}
	}
	delay := o.delay(warn)
	for name, value := range map[string]json.RawMessage{"weight": o.Spec.Weight, "weightFrom": o.Spec.WeightFrom, "immediateNextStage": o.Spec.ImmediateNextStage} {
		if len(value) > 0 && string(value) != "0" && string(value) != "false" {
			warn("%s is ignored", name)
		}
	}
	s.apply = o.next(delay, deleted, warn)
	if s.apply != nil {
		r.stages = append(r.stages, s)
	}
	return nil
}

func isDeletion(e expression) bool { return e.Key == ".metadata.deletionTimestamp" }

// indexed matches the key of an annotation or a label: .metadata.labels["key"].
var indexed = regexp.MustCompile(`^\.metadata\.(labels|annotations)\["?([^"\]]+)"?\]$`)

// read applies an expression. It returns false if it has no counterpart.
func (s *stage) read(e expression) bool {
	operator, ok := map[string]selection.Operator{
		"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist,
	}[e.Operator]
	switch found := indexed.FindStringSubmatch(e.Key); {
	case !ok:
		return false
	case strings.HasPrefix(e.Key, ".status."):
		return true // the order of stages, which is that of the lifecycle of a pod
	case e.Key == ".metadata.ownerReferences.[].kind" && operator == selection.In:
		s.owners = append(s.owners, e.Values...)
		return true
	case found != nil:
		required, err := labels.NewRequirement(found[2], operator, e.Values)
		if err != nil {
			return false
		}
		if found[1] == "labels" {
			s.labels = s.labels.Add(*required)
		} else {
			s.annotations = s.annotations.Add(*required)
		}
		return true
	}
	return false
}

// delay returns the delay of the Stage.
func (o *stageObject) delay(warn func(string, ...any)) time.Duration {
	var ms int64
	for _, name := range slices.Sorted(maps.Keys(o.Spec.Delay)) {
		if name == "durationMilliseconds" && json.Unmarshal(o.Spec.Delay[name], &ms) == nil && ms >= 0 {
			continue
		}
		warn("delay.%s is ignored", name)
	}
	return time.Duration(ms) * time.Millisecond
}

// next returns the effect of the Stage on a behavior; nil if it has none.
func (o *stageObject) next(delay time.Duration, deleted bool, warn func(string, ...any)) (apply func(*fake.Behavior)) {
	for _, name := range slices.Sorted(maps.Keys(o.Spec.Next)) {
		value := o.Spec.Next[name]
		switch name {
		case "statusTemplate":
			var text string
			if json.Unmarshal(value, &text) == nil && !deleted {
				apply = o.status(text, delay)
			}
			if apply == nil {
				warn("next.statusTemplate is ignored: it specifies neither a phase nor why a container waits or has terminated")
			}
		case "delete":
			if string(value) == "true" && deleted {
				apply = func(b *fake.Behavior) { b.StopDelay += delay }
			} else {
				warn("next.delete is ignored: only the removal of deleted pods is read")
			}
		default:
			warn("next.%s is ignored", name)
		}
	}
	return apply
}

// status returns the effect of a status, by the delay until it is set; nil if it has none. The
// delays of a stage after another add up, as those of starts and readiness do.
func (o *stageObject) status(text string, delay time.Duration) func(*fake.Behavior) {
	phase := ""
	if found := phasePattern.FindStringSubmatch(text); found != nil {
		phase = found[1]
	}
	block, reason := "", ""
	if at := blockPattern.FindStringSubmatchIndex(text); at != nil {
		block = text[at[2]:at[3]]
		if found := reasonPattern.FindStringSubmatch(text[at[1]:]); found != nil {
			reason = found[1]
		}
	}
	code := int32(0)
	if phase == "Failed" {
		code = 1
	}
	if found := codePattern.FindStringSubmatch(text); found != nil {
		if n, err := strconv.ParseUint(found[1], 10, 8); err == nil {
			code = int32(n)
		}
	}
	switch {
	case phase == "Running" && block == "terminated", phase == "Succeeded", phase == "Failed":
		if reason == "Completed" || reason == "Error" {
			reason = "" // those of the code
		}
		return func(b *fake.Behavior) { b.Exit = &fake.Exit{After: delay, Code: code, Reason: reason} }
	case block == "waiting" && reason != "" && reason != "ContainerCreating" && reason != "PodInitializing":
		return func(b *fake.Behavior) { b.Fail = &fake.Failure{Reason: reason} }
	case phase == "Running", phase == "Pending":
		return func(b *fake.Behavior) { b.StartDelay += delay }
	}
	return nil
}

// staged returns the behavior of a container that the Stages specify; false if none selects it.
func (r *Rules) staged(pod *v1.Pod, c *v1.Container) (b fake.Behavior, ok bool) {
	if !slices.ContainsFunc(pod.Spec.Containers, func(main v1.Container) bool { return main.Name == c.Name }) {
		return b, false // kwok's Stages for init containers are not read
	}
	for i := range r.stages {
		s := &r.stages[i]
		if s.labels.Matches(labels.Set(pod.Labels)) && s.annotations.Matches(labels.Set(pod.Annotations)) && s.owned(pod) {
			s.apply(&b)
			ok = true
		}
	}
	return b, ok
}

// owned reports whether an owner of the pod is of a kind that the Stage selects.
func (s *stage) owned(pod *v1.Pod) bool {
	return len(s.owners) == 0 || slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return slices.Contains(s.owners, o.Kind) })
}
