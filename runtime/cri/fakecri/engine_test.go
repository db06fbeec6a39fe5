package fakecri_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// A test only has to set an annotation on a pod that an agent runs.
func TestTheEngineRunsTheBehaviorOfAnAnnotation(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		fake, err := fakecri.New(fakecri.Config{WriteLogs: true, Images: map[string]fake.Image{"*": {PullTime: 3 * time.Second}}})
		require.NoError(t, err)
		rt, err := cri.New(cri.Config{Name: "fakecri", Runtime: fake, Images: fake, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}})
		require.NoError(t, err)
		pod := &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "uid-1", Annotations: map[string]string{
				fakecri.AnnotationContainerBehavior + "web": `
log="request %d";every=1s
http=8080@5s
memory=64Mi
cpu=250m
disk=1Mi
`}},
			Spec: v1.PodSpec{Containers: []v1.Container{{Name: "web", Image: "shop/web:1", ImagePullPolicy: v1.PullAlways}}},
		}
		start := time.Now()
		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
		require.NoError(t, err)
		assert.Equal(t, 3*time.Second, time.Since(start), "the pull")
		st, err := rt.PodStatus(t.Context(), pod.UID)
		require.NoError(t, err)
		require.Len(t, st.Containers, 1)

		code, err := probe(fake.DialContext, st.IPs[0]+":8080")
		require.NoError(t, err)
		assert.Equal(t, 503, code)
		time.Sleep(5500 * time.Millisecond)
		code, err = probe(fake.DialContext, st.IPs[0]+":8080")
		require.NoError(t, err)
		assert.Equal(t, 200, code)

		path, err := rt.LogPath(t.Context(), st.Containers[0].ID)
		require.NoError(t, err)
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Contains(t, string(data), "2000-01-01T00:00:08.000000000Z stdout F request 6\n")

		stats, err := rt.PodStats(t.Context())
		require.NoError(t, err)
		require.Len(t, stats, 1)
		assert.EqualValues(t, 64<<20, *stats[0].Memory.WorkingSet)
		assert.EqualValues(t, 250e6, *stats[0].Containers[0].CPU.NanoCores)
		images, _, err := rt.ImageFS(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, 2<<20, *images[0].Bytes, "an image and a writable layer")

		require.NoError(t, rt.KillPod(t.Context(), runtime.KillRequest{UID: pod.UID, Pod: pod}))
		_, err = probe(fake.DialContext, st.IPs[0]+":8080")
		assert.Error(t, err)
	})
}

func TestTheEngineReportsAnInvalidAnnotation(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		fake, err := fakecri.New(fakecri.Config{})
		require.NoError(t, err)
		rt, err := cri.New(cri.Config{Name: "fakecri", Runtime: fake, Images: fake, Dirs: cri.Dirs{Root: dir + "/root", PodLogs: dir + "/logs"}})
		require.NoError(t, err)
		_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default", UID: "uid-1", Annotations: map[string]string{
				fakecri.AnnotationBehavior: "exit=0@5",
			}},
			Spec: v1.PodSpec{Containers: []v1.Container{{Name: "web", Image: "shop/web:1"}}},
		}})
		assert.ErrorContains(t, err, `annotation fakecri.kubeparts.io/behavior: behavior \"exit=0@5\": \"exit=0@5\": \"5\" is not a duration`)
	})
}
