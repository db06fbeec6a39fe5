package podsource

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kubeparts/kubeparts/runtime"
)

// Fields of a pod whose changes have an effect on a running pod, by their names in Go. All other
// fields of the spec are immutable, as in the API server.
var (
	mutableOfSpec = []string{
		"ActiveDeadlineSeconds", "TerminationGracePeriodSeconds", "Tolerations", "Resources", "EphemeralContainers",
		"NodeSelector", "Affinity", "SchedulingGates", // of the scheduler
		"Containers", "InitContainers", // compared by container
	}
	mutableOfContainer = []string{"Image", "Resources", "ResizePolicy"}
)

// changedImmutable returns the immutable fields of the spec that differ.
func changedImmutable(was, now *v1.Pod) (fields []string) {
	fields = changedFields("spec.", was.Spec, now.Spec, mutableOfSpec)
	fields = append(fields, changedContainers("spec.initContainers", was.Spec.InitContainers, now.Spec.InitContainers)...)
	return append(fields, changedContainers("spec.containers", was.Spec.Containers, now.Spec.Containers)...)
}

func changedContainers(path string, was, now []v1.Container) (fields []string) {
	if !slices.EqualFunc(was, now, func(a, b v1.Container) bool { return a.Name == b.Name }) {
		return []string{path}
	}
	for i := range was {
		fields = append(fields, changedFields(path+"{"+now[i].Name+"}.", was[i], now[i], mutableOfContainer)...)
	}
	return fields
}

// changedFields returns the names in JSON of the fields of two structs that differ, except those with
// the given names in Go.
func changedFields[T any](prefix string, a, b T, except []string) (fields []string) {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	for i := range x.NumField() {
		f := x.Type().Field(i)
		if slices.Contains(except, f.Name) || equality.Semantic.DeepEqual(x.Field(i).Interface(), y.Field(i).Interface()) {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields = append(fields, prefix+name)
	}
	return fields
}

// maxChangedFields is the maximum number of fields in a message.
const maxChangedFields = 10

// reportWithoutEffect logs and records that changes of pods have no effect. updated are the new
// versions.
func (m *Merge) reportWithoutEffect(old, updated []*v1.Pod) {
	if len(updated) == 0 {
		return
	}
	before := byUID(old)
	for _, now := range updated {
		fields := changedImmutable(before[now.UID], now)
		if len(fields) == 0 {
			continue
		}
		if more := len(fields) - maxChangedFields; more > 0 {
			fields = append(fields[:maxChangedFields], fmt.Sprintf("%d more", more))
		}
		changed := strings.Join(fields, ", ")
		m.cfg.Logger.Warn("Change of pod has no effect on what runs; another pod has another UID", "pod", now.Namespace+"/"+now.Name, "podUID", now.UID, "fields", changed)
		if m.cfg.Record != nil {
			m.cfg.Record(runtime.Event{
				Object: runtime.PodRef(now), Type: v1.EventTypeWarning, Reason: "ChangeWithoutEffect",
				Message: "Change has no effect on what runs, since the pod has the same UID: " + changed,
			})
		}
	}
}
