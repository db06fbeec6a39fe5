package podsource_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource"
	"github.com/kubeparts/kubeparts/runtime"
)

// pod returns a pod whose UID is its name.
func pod(name string, change ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}}
	for _, c := range change {
		c(p)
	}
	return p
}

func image(image string) func(*v1.Pod) {
	return func(p *v1.Pod) { p.Spec.Containers = []v1.Container{{Name: "c", Image: image}} }
}

func uid(uid types.UID) func(*v1.Pod) { return func(p *v1.Pod) { p.UID = uid } }

// A journal is a Sink that records its calls.
type journal struct {
	mu    sync.Mutex
	lines []string
	pods  map[types.UID]*v1.Pod // those that the calls add up to
}

func (j *journal) note(verb string, pods []*v1.Pod) {
	var names []string
	for _, p := range pods {
		names = append(names, p.Annotations[runtime.ConfigSourceAnnotation]+"/"+p.Name)
	}
	j.lines = append(j.lines, verb+" "+strings.Join(names, " "))
}

func (j *journal) AddPods(pods []*v1.Pod) { j.put("add", pods, false) }

func (j *journal) UpdatePods(pods []*v1.Pod) { j.put("update", pods, true) }

func (j *journal) ReconcilePods([]*v1.Pod) {}

func (j *journal) put(verb string, pods []*v1.Pod, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note(verb, pods)
	for _, p := range pods {
		if _, ok := j.pods[p.UID]; ok != known {
			panic(fmt.Sprintf("%s of %s, known is %v", verb, p.UID, ok))
		}
		if j.pods == nil {
			j.pods = make(map[types.UID]*v1.Pod)
		}
		j.pods[p.UID] = p
	}
}

func (j *journal) RemovePods(pods []*v1.Pod) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.note("remove", pods)
	for _, p := range pods {
		if _, ok := j.pods[p.UID]; !ok {
			panic("remove of unknown " + p.UID)
		}
		delete(j.pods, p.UID)
	}
}

func (j *journal) SourceSynced(source string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, "synced "+source)
}

// take returns the calls since the last take, after all goroutines are blocked.
func (j *journal) take() []string {
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

// startMerge runs a Merge until the test ends. Call it within a bubble.
func startMerge(t *testing.T, cfg podsource.MergeConfig) {
	t.Helper()
	m, err := podsource.NewMerge(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
	})
}
