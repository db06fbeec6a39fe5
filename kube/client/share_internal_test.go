package client

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// version returns a version of a pod as it is read: it shares nothing with others.
func version(v string, edits ...func(*v1.Pod)) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", Namespace: "prod", UID: "1", ResourceVersion: v, Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"a": "b"},
		},
		Spec:   v1.PodSpec{NodeName: "n", Containers: []v1.Container{{Name: "main", Image: "web:1"}}},
		Status: v1.PodStatus{Message: v},
	}
	for _, edit := range edits {
		edit(pod)
	}
	return pod
}

func TestVersionsOfAPodShareWhatIsEqual(t *testing.T) {
	client, err := kubernetes.NewForConfig(&rest.Config{})
	require.NoError(t, err)
	feed, err := NewFeed(FeedConfig{Client: client})
	require.NoError(t, err)
	pods, err := NewPods(PodsConfig{Client: client, NodeName: "n"})
	require.NoError(t, err)
	for name, s := range map[string]store[*v1.Pod]{"feed": feed, "pods": pods} {
		t.Run(name, func(t *testing.T) {
			first, second, listed := version("1"), version("2"), version("3")
			s.replace([]*v1.Pod{first})
			s.put(second)
			s.replace([]*v1.Pod{listed})
			for _, later := range []*v1.Pod{second, listed} {
				assert.Same(t, &first.Spec.Containers[0], &later.Spec.Containers[0])
				first.Labels["shared"+later.ResourceVersion] = "" // a map is compared by its content
				assert.Equal(t, first.Labels, later.Labels)
				assert.Equal(t, later.ResourceVersion, later.Status.Message)
			}
			changed := version("4", func(p *v1.Pod) { p.Spec.Containers[0].Image, p.Annotations["a"] = "web:2", "c" })
			s.put(changed)
			assert.Equal(t, "web:1 b", listed.Spec.Containers[0].Image+" "+listed.Annotations["a"])
			assert.Equal(t, "web:2 c", changed.Spec.Containers[0].Image+" "+changed.Annotations["a"])
		})
	}
}
