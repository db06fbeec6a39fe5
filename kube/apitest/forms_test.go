package apitest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// TestFormsOfUnchangedObjectsAreDropped stores objects that a watch is sent. Afterwards, the
// memory is that of the objects, without that of the responses.
func TestFormsOfUnchangedObjectsAreDropped(t *testing.T) {
	const objects, size = 500, 20 << 10
	api := &apitest.Server{NoRecord: true}
	clients, err := kubernetes.NewForConfig(api.RESTConfig())
	require.NoError(t, err)
	maps := clients.CoreV1().ConfigMaps("default")
	w, err := maps.Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer w.Stop()
	heap := func() int {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int(stats.HeapAlloc)
	}
	before := heap()
	for i := range objects {
		one := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("map-", i)}, Data: map[string]string{"text": strings.Repeat("x", size)}}
		_, err := maps.Create(t.Context(), one, metav1.CreateOptions{})
		require.NoError(t, err)
		<-w.ResultChan()
	}
	after := heap()
	runtime.KeepAlive(api)
	t.Logf("%d KB for %d KB of data", (after-before)>>10, objects*size>>10)
	assert.Less(t, after-before, objects*size*3/2)
}
