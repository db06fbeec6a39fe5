package volume_test

import (
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A volume of a kind that no plugin has is refused at once, and the error names the kind, for a
// claim also the persistent volume, which is not in the pod.
func TestAVolumeOfAnotherKindIsRefused(t *testing.T) {
	type test struct {
		pod    *v1.Pod
		claims *claims
		want   string
	}
	inline := func(source v1.VolumeSource) *v1.Pod {
		p := pod("p", "c")
		p.Spec.Volumes[0].VolumeSource = source
		return p
	}
	claimed := func(source v1.PersistentVolumeSource) *claims {
		return new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.PersistentVolumeSource = source })
	}
	const none = `volume "c": no volume plugin matched`
	tests := []test{
		{pod: inline(v1.VolumeSource{NFS: new(v1.NFSVolumeSource)}), want: none + ": volumes of kind nfs are not supported by this agent"},
		{pod: inline(v1.VolumeSource{ISCSI: new(v1.ISCSIVolumeSource)}), want: none + ": volumes of kind iscsi are not supported by this agent"},
		{pod: inline(v1.VolumeSource{FC: new(v1.FCVolumeSource)}), want: none + ": volumes of kind fc are not supported by this agent"},
		{pod: inline(v1.VolumeSource{}), want: none},
		{pod: claimPod("p", "c"), claims: claimed(v1.PersistentVolumeSource{}), want: none},
	}
	kinds := reflect.TypeFor[v1.PersistentVolumeSource]()
	for i := range kinds.NumField() {
		var source v1.PersistentVolumeSource
		field := reflect.ValueOf(&source).Elem().Field(i)
		field.Set(reflect.New(field.Type().Elem()))
		name, _, _ := strings.Cut(kinds.Field(i).Tag.Get("json"), ",")
		tests = append(tests, test{
			pod: claimPod("p", "c"), claims: claimed(source),
			want: none + `: persistent volume "pv-c" is of kind ` + name + ", which is not supported by this agent",
		})
	}
	for _, c := range tests {
		synctest.Test(t, func(t *testing.T) {
			plugin := &volumetest.Plugin{Supports: func(s *volume.Spec) bool { return s.Volume != nil && s.Volume.EmptyDir != nil }}
			n := start(t, &node{root: t.TempDir(), plugin: plugin, mounter: new(volumetest.Mounter)}, func(cfg *volume.Config) {
				if c.claims != nil {
					cfg.PersistentVolumes.Claims = c.claims
				}
			})
			begun := time.Now()
			_, err := n.Mount(t.Context(), c.pod)
			assert.Zero(t, time.Since(begun))
			assert.EqualError(t, err, "unmounted volumes=[c], unattached volumes=[], failed to process volumes=[c]: "+c.want)
		})
	}
}
