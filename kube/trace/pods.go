package trace

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/sim/cluster"
)

// podLabel is the label of the pods of an object that replaces them.
const podLabel = "trace.kubeparts.io/pod"

// OfPods returns a trace that creates pods in a namespace when they arrive. The run time and the
// exit code of their containers are the behavior that the annotation declares, as with
// fakenode.Annotation.
func OfPods(pods []cluster.Pod, namespace, annotation string) (*Trace, error) {
	order := make([]int, len(pods))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(pods[a].Arrival, pods[b].Arrival) })
	t, classes := &Trace{}, map[int32]bool{}
	for _, i := range order {
		p := &pods[i]
		if len(t.Events) == 0 || t.Events[len(t.Events)-1].At != p.Arrival {
			t.Events = append(t.Events, Event{At: p.Arrival})
		}
		e := &t.Events[len(t.Events)-1]
		var objects []runtime.Object
		if p.Priority != 0 && !classes[p.Priority] {
			classes[p.Priority] = true
			objects = append(objects, priorityClass(p.Priority))
		}
		objects = append(objects, podObject(p, cmp.Or(p.Name, fmt.Sprintf("pod-%d", i)), namespace, annotation))
		for _, o := range objects {
			u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				return nil, fmt.Errorf("trace: pod %d: %w", i, err)
			}
			e.Applied = append(e.Applied, &unstructured.Unstructured{Object: u})
		}
	}
	return t, nil
}

// className returns the name of the PriorityClass of a priority.
func className(priority int32) string {
	if priority < 0 {
		return fmt.Sprintf("trace-minus-%d", -int64(priority))
	}
	return fmt.Sprintf("trace-%d", priority)
}

func priorityClass(priority int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
		ObjectMeta: metav1.ObjectMeta{Name: className(priority)},
		Value:      priority,
	}
}

// podObject returns the pod, or the object that replaces it when it fails.
func podObject(p *cluster.Pod, name, namespace, annotation string) runtime.Object {
	pod := p.Object(name, time.Time{})
	pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	pod.Namespace, pod.UID = namespace, ""
	pod.Spec.AutomountServiceAccountToken = new(false) // no process would use it
	pod.Spec.RestartPolicy = cmp.Or(pod.Spec.RestartPolicy, v1.RestartPolicyAlways)
	pod.Spec.Containers[0].Image = cmp.Or(p.Image, "none")
	if p.Priority == 0 {
		pod.Spec.Priority = nil
	} else { // an API server accepts the value that the class has
		pod.Spec.PriorityClassName = className(p.Priority)
	}
	if p.RunTime > 0 {
		b := fake.Behavior{Exit: &fake.Exit{After: p.RunTime, Code: p.ExitCode}}
		pod.Annotations = map[string]string{annotation: b.String()}
	}
	if !p.Recreate {
		return pod
	}
	labels := map[string]string{podLabel: name}
	for key, value := range p.Labels {
		labels[key] = value
	}
	template := v1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: pod.Annotations}, Spec: pod.Spec}
	owner := metav1.ObjectMeta{Namespace: namespace, Name: name}
	if pod.Spec.RestartPolicy == v1.RestartPolicyAlways {
		return &appsv1.ReplicaSet{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"}, ObjectMeta: owner,
			Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{podLabel: name}}, Template: template},
		}
	}
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: owner,
		Spec: batchv1.JobSpec{BackoffLimit: new(int32(1<<31 - 1)), Template: template},
	}
}
