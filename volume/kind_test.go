package volume_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// A volume of a kind that no plugin has is refused at once, and the error names the kind.
func TestAVolumeOfAnotherKindIsRefused(t *testing.T) {
	nfs := &v1.NFSVolumeSource{Server: "s", Path: "/p"}
	inline := func(source v1.VolumeSource) *v1.Pod {
		p := pod("p", "c")
		p.Spec.Volumes[0].VolumeSource = source
		return p
	}
	claimed := func(source v1.PersistentVolumeSource) *claims {
		return new(claims).bound("c", func(_ *v1.PersistentVolumeClaim, pv *v1.PersistentVolume) { pv.Spec.PersistentVolumeSource = source })
	}
	for kind, c := range map[string]struct {
		pod    *v1.Pod
		claims *claims
	}{
		"nfs":       {pod: inline(v1.VolumeSource{NFS: nfs})},
		"iscsi":     {pod: inline(v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{}})},
		"fc":        {pod: inline(v1.VolumeSource{FC: &v1.FCVolumeSource{}})},
		"nfs ":      {pod: claimPod("p", "c"), claims: claimed(v1.PersistentVolumeSource{NFS: nfs})},
		"glusterfs": {pod: claimPod("p", "c"), claims: claimed(v1.PersistentVolumeSource{Glusterfs: &v1.GlusterfsPersistentVolumeSource{}})},
		"":          {pod: inline(v1.VolumeSource{})},
	} {
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
			want := `volume "c": no volume plugin matched`
			if kind != "" {
				want += ": volumes of kind " + strings.TrimSpace(kind) + " are not supported by this agent"
			}
			assert.ErrorContains(t, err, "failed to process volumes=[c]: "+want)
			if kind == "" {
				assert.NotContains(t, err.Error(), "of kind")
			}
		})
	}
}
