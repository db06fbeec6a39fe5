// Package informers_test tests code that uses client-go's informers in virtual time.
package informers_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/kubeparts/kubeparts/kube/apitest"
	"github.com/kubeparts/kubeparts/kube/fakenode"
)

// crashLooping is the code under test: it returns the names of pods whose container waits
// for its next restart.
func crashLooping(pods corelisters.PodLister) (names []string, err error) {
	list, err := pods.List(labels.Everything())
	for _, pod := range list {
		for _, c := range pod.Status.ContainerStatuses {
			if c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff" {
				names = append(names, pod.Name)
			}
		}
	}
	return names, err
}

func TestCrashLooping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		config := new(apitest.Server).RESTConfig()
		fakenode.Start(t.Context(), t, config, fakenode.Config{})
		api, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		factory := informers.NewSharedInformerFactory(api, 0)
		pods := factory.Core().V1().Pods()
		pods.Informer() // registers it, before Start
		stop := make(chan struct{})
		factory.Start(stop)
		defer func() { close(stop); factory.Shutdown() }() // before the nodes stop, in t.Cleanup
		factory.WaitForCacheSync(stop)

		for name, behavior := range map[string]string{"good": "run", "bad": "exit=1@5s", "healing": "exit=1@1s,crashes=2"} {
			_, err := api.CoreV1().Pods("default").Create(t.Context(), &v1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{fakenode.Annotation: behavior}},
				Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "app:1"}}},
			}, metav1.CreateOptions{})
			require.NoError(t, err)
		}
		time.Sleep(time.Hour) // of virtual time
		names, err := crashLooping(pods.Lister())
		require.NoError(t, err)
		require.Equal(t, []string{"bad"}, names)
	})
}
