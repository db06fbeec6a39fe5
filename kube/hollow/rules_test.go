package hollow_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/hollow"
)

// behavior returns the text of the behavior of a container.
func behavior(r *hollow.Rules, pod *v1.Pod, container string) string {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Name != container {
				continue
			}
			if b, ok := r.Behavior(pod, &list[i]); ok {
				return b.String()
			}
		}
	}
	return "none"
}

func podOf(namespace, app, image string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", Labels: map[string]string{"app": app}},
		Spec:       v1.PodSpec{InitContainers: []v1.Container{{Name: "init"}}, Containers: []v1.Container{{Name: "main", Image: image}, {Name: "side", Image: "proxy:1"}}},
	}
}

func TestTheFirstMatchingRuleApplies(t *testing.T) {
	r, err := hollow.ParseRules(`
rules:
- namespaces: [load-*, test]
  labels: app in (web, api)
  images: ["nginx:*"]
  containers: [main]
  behavior: ready=2s
- images: ["proxy:*"]
  behavior: start=1s
- labels: app=job
  behavior: exit=1@1m,crashes=2
`)
	require.NoError(t, err)
	assert.Empty(t, r.Warnings)
	assert.Equal(t, "ready=2s", behavior(r, podOf("load-1", "web", "nginx:1.29"), "main"))
	assert.Equal(t, "none", behavior(r, podOf("default", "web", "nginx:1.29"), "main"))
	assert.Equal(t, "none", behavior(r, podOf("test", "db", "nginx:1.29"), "main"))
	assert.Equal(t, "none", behavior(r, podOf("test", "web", "redis"), "main"))
	assert.Equal(t, "start=1s", behavior(r, podOf("test", "web", "redis"), "side"))
	assert.Equal(t, "exit=1@1m,crashes=2", behavior(r, podOf("x", "job", "job"), "main"))
}

func TestErrorsOfRulesNameTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"rules: [{behavior: reddy=1s}]":                  "document 1: rules[0]: behavior: ",
		"rules: [{behavior: run}, {behavior: queue=1s}]": "rules[1]: behavior: ",
		"rules: [{labels: 'a=(', behavior: run}]":        "rules[0]: labels: ",
		"rules: [{images: ['[']}]":                       `"[": syntax error in pattern`,
		"rules: []\n---\nrule: []":                       `document 2: error unmarshaling JSON`,
		"kind: Deployment":                               `kind "Deployment": want rules or a Stage of kwok`,
	} {
		_, err := hollow.ParseRules(text)
		assert.ErrorContains(t, err, want, text)
	}
}

// The Stages are those of kwok's directories pod/general and pod/fast, with other delays.
const stages = `
kind: Stage
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: pod-create}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: 'DoesNotExist'}
    - {key: '.status.podIP', operator: 'DoesNotExist'}
  weight: 1
  delay: {durationMilliseconds: 1000, jitterDurationMilliseconds: 5000}
  next:
    event: {type: Normal, reason: Created, message: Created container}
    finalizers: {add: [{value: 'kwok.x-k8s.io/fake'}]}
    statusTemplate: |
      {{ $now := Now }}
      phase: Pending
      containerStatuses:
      {{ range .spec.containers }}
      - name: {{ .name | Quote }}
        state:
          waiting:
            reason: ContainerCreating
      {{ end }}
---
kind: Stage
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: pod-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: 'DoesNotExist'}
    - {key: '.status.phase', operator: In, values: [Pending]}
  delay: {durationMilliseconds: 2000}
  next:
    statusTemplate: |
      initContainerStatuses:
      {{ range .spec.initContainers }}
      - {name: {{ .name | Quote }}, state: {terminated: {exitCode: 0, reason: Completed}}}
      {{ end }}
      containerStatuses:
      {{ range .spec.containers }}
      - name: {{ .name }}
        ready: true
        state:
          running: {startedAt: {{ Now | Quote }}}
      {{ end }}
      phase: Running
---
kind: Stage
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: pod-complete}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: 'DoesNotExist'}
    - {key: '.status.phase', operator: In, values: [Running]}
    - {key: '.metadata.ownerReferences.[].kind', operator: In, values: [Job]}
  delay: {durationMilliseconds: 60000}
  next:
    statusTemplate: |
      containerStatuses:
      - name: main
        state:
          terminated:
            exitCode: 0
            reason: Completed
      phase: Succeeded
---
kind: Stage
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: pod-failed}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchLabels: {pod-container-running-failed.stage.kwok.x-k8s.io: 'true'}
    matchExpressions:
    - {key: '.metadata.annotations["delay"]', operator: Exists}
    - {key: '.status.phase', operator: In, values: [Running]}
    - {key: '.spec.priority', operator: Exists}
  delay:
    durationMilliseconds: 5000
    durationFrom: {expressionFrom: '.metadata.annotations["delay"]'}
  next:
    statusTemplate: |
      {{ $reason := or ( index .metadata.annotations "reason" ) "OutOfLuck" }}
      phase: Running
      containerStatuses:
      {{ range .spec.containers }}
      - name: {{ .name }}
        state:
      {{ if eq .name "main" }}
          terminated: {exitCode: 3, reason: {{ $reason }}}
      {{ else }}
          running: {}
      {{ end }}
      {{ end }}
---
kind: Stage
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: pod-delete}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: '.metadata.deletionTimestamp', operator: 'Exists'}
  delay: {durationMilliseconds: 4000}
  next: {finalizers: {empty: true}, delete: true}
---
kind: Stage
apiVersion: kwok.x-k8s.io/v1alpha1
metadata: {name: node-initialize}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  next: {statusTemplate: 'conditions: []'}
`

func TestStagesAreReadAsFarAsTheyHaveACounterpart(t *testing.T) {
	r, err := hollow.ParseRules(stages)
	require.NoError(t, err)
	pod := podOf("default", "web", "nginx")
	assert.Equal(t, "start=3s,stop=4s", behavior(r, pod, "main"))
	assert.Equal(t, "none", behavior(r, pod, "init"))
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job"}}
	assert.Equal(t, "start=3s,exit=0@1m,stop=4s", behavior(r, pod, "main"))
	pod.OwnerReferences = nil
	pod.Labels = map[string]string{"pod-container-running-failed.stage.kwok.x-k8s.io": "true"}
	assert.Equal(t, "start=3s,stop=4s", behavior(r, pod, "main"), "without its annotation")
	pod.Annotations = map[string]string{"delay": "later"}
	assert.Equal(t, "start=3s,exit=3@5s,reason=OutOfLuck,stop=4s", behavior(r, pod, "main"))
	assert.Equal(t, "start=3s,stop=4s", behavior(r, pod, "side"), "another container runs")
	pod.Annotations = map[string]string{"delay": "7s", "reason": "Unknown"}
	assert.Equal(t, "start=3s,exit=3@7s,reason=Unknown,stop=4s", behavior(r, pod, "main"))
	assert.Equal(t, []string{
		"Stage node-initialize: resourceRef.kind Node is ignored: only Stages of pods are read",
		"Stage pod-create: delay.jitterDurationMilliseconds is ignored",
		"Stage pod-create: next.event is ignored",
		"Stage pod-create: next.finalizers is ignored",
		"Stage pod-create: weight is ignored",
		"Stage pod-delete: next.finalizers is ignored",
		"Stage pod-failed: selector.matchExpressions: key .spec.priority with Exists is ignored",
	}, r.Warnings)
}

// A field of a Stage without a counterpart in a behavior is a warning.
func TestStagesWithoutCounterpartAreWarnings(t *testing.T) {
	r, err := hollow.ParseRules(`
kind: Stage
metadata: {name: odd}
spec:
  resourceRef: {kind: Pod}
  immediateNextStage: true
  delay: {durationFrom: {expressionFrom: '.spec.priority'}}
  next: {delete: true, patches: [], statusTemplate: '{{ Unknown }}'}
`)
	require.NoError(t, err)
	assert.Equal(t, "none", behavior(r, podOf("default", "web", "nginx"), "main"))
	assert.Equal(t, []string{
		"Stage odd: delay.durationFrom is ignored",
		"Stage odd: immediateNextStage is ignored",
		"Stage odd: next.delete is ignored: only the removal of deleted pods is read",
		"Stage odd: next.patches is ignored",
		"Stage odd: next.statusTemplate is ignored: template: statusTemplate:1: function \"Unknown\" not defined",
	}, r.Warnings)
}
