package cri_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

func podOf(containers ...v1.Container) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod", UID: "u-1"},
		Spec: v1.PodSpec{
			RestartPolicy: v1.RestartPolicyAlways, TerminationGracePeriodSeconds: new(int64(30)),
			DNSPolicy: v1.DNSNone, SecurityContext: &v1.PodSecurityContext{}, Containers: containers,
		},
	}
}

// removed is a policy with which the pods are removed.
func removed(uids ...types.UID) runtime.GCPolicy {
	return runtime.GCPolicy{Keep: func(uid types.UID) bool { return !slices.Contains(uids, uid) }}
}

// events records the events passed to Config.Record.
type events struct {
	mu   sync.Mutex
	list []runtime.Event
}

func (e *events) record(ev runtime.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
}

// take returns the events since the last take, as "Type Reason path: message".
func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var lines []string
	for _, ev := range e.list {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s", ev.Type, ev.Reason, ev.Object.FieldPath, ev.Message))
	}
	e.list = nil
	return lines
}

// vault is a set of secrets by name.
type vault map[string]*v1.Secret

func (vault) ConfigMap(context.Context, string, string) (*v1.ConfigMap, error) {
	return nil, errors.New("no")
}

func (v vault) Secret(_ context.Context, _, name string) (*v1.Secret, error) {
	if s := v[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("secret %q not found", name)
}

func (vault) Services(context.Context, string) ([]*v1.Service, bool) { return nil, true }

// volumeGroups implements cri.Volumes.
type volumeGroups []int64

func (g volumeGroups) Groups(*v1.Pod) []int64 { return g }

func (volumeGroups) SubPath(context.Context, runtime.SubPath) (string, error) {
	return "", errors.ErrUnsupported
}
