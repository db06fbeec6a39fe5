package hollow

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"
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

// A stage is what a Stage specifies for the containers of the pods that it selects.
type stage struct {
	labels, annotations labels.Selector
	owners              []string // kinds of an owner of the pod; empty: all pods
	deleted             bool     // it applies to pods that are deleted
	runs                bool     // it applies to pods that run

	delay     time.Duration
	delayFrom string             // annotation with another delay; "" if there is none
	status    *template.Template // the next status; nil: the pod is removed
}

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
	if sel := o.Spec.Selector; sel != nil {
		s.labels, s.annotations = labels.SelectorFromSet(sel.MatchLabels), labels.SelectorFromSet(sel.MatchAnnotations)
		for _, e := range sel.MatchExpressions {
			if !s.read(e) {
				warn("selector.matchExpressions: key %s with %s is ignored", e.Key, e.Operator)
			}
		}
	}
	s.readDelay(o.Spec.Delay, warn)
	for name, value := range map[string]json.RawMessage{"weight": o.Spec.Weight, "weightFrom": o.Spec.WeightFrom, "immediateNextStage": o.Spec.ImmediateNextStage} {
		if len(value) > 0 && string(value) != "0" && string(value) != "false" {
			warn("%s is ignored", name)
		}
	}
	if s.readNext(o.Spec.Next, warn) {
		r.stages = append(r.stages, s)
	}
	return nil
}

// indexed matches an annotation or a label in an expression: .metadata.labels["key"].
var indexed = regexp.MustCompile(`^\.metadata\.(labels|annotations)\["?([^"\]]+)"?\]$`)

// read applies an expression of the selector. It returns false if it has no counterpart.
func (s *stage) read(e expression) bool {
	operator, ok := map[string]selection.Operator{
		"In": selection.In, "NotIn": selection.NotIn, "Exists": selection.Exists, "DoesNotExist": selection.DoesNotExist,
	}[e.Operator]
	switch found := indexed.FindStringSubmatch(e.Key); {
	case !ok:
		return false
	case e.Key == ".metadata.deletionTimestamp":
		s.deleted = operator == selection.Exists
		return true
	case strings.HasPrefix(e.Key, ".status."): // the order of stages, which is that of the lifecycle of a pod
		s.runs = s.runs || e.Key == ".status.phase" && operator == selection.In && slices.Contains(e.Values, string(v1.PodRunning))
		return true
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

// readDelay reads the delay: a duration, and an annotation that replaces it.
func (s *stage) readDelay(delay map[string]json.RawMessage, warn func(string, ...any)) {
	for _, name := range slices.Sorted(maps.Keys(delay)) {
		var ms int64
		var from struct {
			ExpressionFrom string `json:"expressionFrom"`
		}
		switch {
		case name == "durationMilliseconds" && json.Unmarshal(delay[name], &ms) == nil && ms >= 0:
			s.delay = time.Duration(ms) * time.Millisecond
			continue
		case name == "durationFrom" && json.Unmarshal(delay[name], &from) == nil:
			if found := indexed.FindStringSubmatch(from.ExpressionFrom); found != nil && found[1] == "annotations" {
				s.delayFrom = found[2]
				continue
			}
		}
		warn("delay.%s is ignored", name)
	}
}

// readNext reads the next state, and returns whether the Stage has an effect.
func (s *stage) readNext(next map[string]json.RawMessage, warn func(string, ...any)) (effect bool) {
	for _, name := range slices.Sorted(maps.Keys(next)) {
		value := string(next[name])
		switch {
		case value == "false" || value == "null":
		case name == "delete" && s.deleted:
			effect = true
		case name == "delete":
			warn("next.delete is ignored: only the removal of deleted pods is read")
		case name == "statusTemplate" && !s.deleted:
			var text string
			err := json.Unmarshal(next[name], &text)
			if err == nil {
				s.status, err = parseTemplate(text)
			}
			if err != nil {
				warn("next.statusTemplate is ignored: %v", err)
			}
			effect = err == nil
		default:
			warn("next.%s is ignored", name)
		}
	}
	return effect
}

// staged returns the behavior of a container that the Stages specify; false if none selects it.
// Stages of init containers are not read: these exit.
func (r *Rules) staged(pod *v1.Pod, c *v1.Container) (b fake.Behavior, ok bool) {
	if !slices.ContainsFunc(pod.Spec.Containers, func(main v1.Container) bool { return main.Name == c.Name }) {
		return b, false
	}
	for i := range r.stages {
		if s := &r.stages[i]; s.selects(pod) {
			s.apply(&b, pod, c.Name)
			ok = true
		}
	}
	return b, ok
}

func (s *stage) selects(pod *v1.Pod) bool {
	return s.labels.Matches(labels.Set(pod.Labels)) && s.annotations.Matches(labels.Set(pod.Annotations)) &&
		(len(s.owners) == 0 || slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool { return slices.Contains(s.owners, o.Kind) }))
}

// apply adds the effect of the Stage on a container. The delays of Stages until a pod runs add
// up.
func (s *stage) apply(b *fake.Behavior, pod *v1.Pod, container string) {
	delay := s.delay
	if d, err := time.ParseDuration(pod.Annotations[s.delayFrom]); err == nil && d >= 0 {
		delay = d
	}
	if s.status == nil {
		b.StopDelay += delay
		return
	}
	status, err := execute(s.status, pod)
	if err != nil {
		b.Fail = &fake.Failure{Reason: "StageError", Message: err.Error()} // it was valid for the example
		return
	}
	var state v1.ContainerState
	if i := slices.IndexFunc(status.ContainerStatuses, func(c v1.ContainerStatus) bool { return c.Name == container }); i >= 0 {
		state = status.ContainerStatuses[i].State
	}
	switch waiting, exited := state.Waiting, state.Terminated; {
	case exited != nil:
		b.Exit = &fake.Exit{After: delay, Code: exited.ExitCode & 255, Reason: exited.Reason}
		if exited.Reason == "Completed" || exited.Reason == "Error" {
			b.Exit.Reason = "" // those of the code
		}
	case status.Phase == v1.PodSucceeded:
		b.Exit = &fake.Exit{After: delay}
	case status.Phase == v1.PodFailed:
		b.Exit = &fake.Exit{After: delay, Code: 1}
	case waiting != nil && waiting.Reason != "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
		b.Fail = &fake.Failure{Reason: waiting.Reason}
	case !s.runs && (status.Phase == v1.PodRunning || status.Phase == v1.PodPending):
		b.StartDelay += delay
	}
}
