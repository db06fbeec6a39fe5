package volumes

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/kube/csimigration"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// Each field of VolumeSource: supported by a plugin, migrated to a CSI driver, or rejected.
func TestVolumeSources(t *testing.T) {
	const supported, migrated, claim, rejected = "supported", "migrated", "claim", "rejected"
	want := map[string]string{
		"configMap": supported, "csi": supported, "downwardAPI": supported, "emptyDir": supported, "hostPath": supported,
		"image": supported, "nfs": supported, "projected": supported, "secret": supported,
		"persistentVolumeClaim": claim, "ephemeral": claim,
		"awsElasticBlockStore": migrated, "azureDisk": migrated, "azureFile": migrated, "cinder": migrated,
		"gcePersistentDisk": migrated, "portworxVolume": migrated, "vsphereVolume": migrated,
		"cephfs": rejected, "fc": rejected, "flexVolume": rejected, "flocker": rejected, "gitRepo": rejected, "glusterfs": rejected,
		"iscsi": rejected, "photonPersistentDisk": rejected, "quobyte": rejected, "rbd": rejected, "scaleIO": rejected, "storageos": rejected,
	}
	vols, err := New(wingtest.Base(t, wingtest.Standalone(t, "")), Deps{})
	require.NoError(t, err)
	names, csi := map[string]bool{}, &volumetest.Plugin{Kind: "csi", Supports: func(s *volume.Spec) bool {
		return s.PV != nil && s.PV.Spec.CSI != nil || s.Volume != nil && s.Volume.CSI != nil
	}}
	for _, p := range vols.Support.Plugins {
		names[p.Name()] = true
	}
	plugins := vols.Support.Plugins
	if !names["kubernetes.io/csi"] { // without the permission to mount
		plugins = append(plugins, csi)
	}
	standalone := Support{Plugins: plugins}
	cluster := Support{Plugins: plugins, Translate: csimigration.Translate}
	kinds := reflect.TypeFor[v1.VolumeSource]()
	got := map[string]string{}
	for i := range kinds.NumField() {
		name, _, _ := strings.Cut(kinds.Field(i).Tag.Get("json"), ",")
		pod := &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{{Name: "data"}}}}
		source := reflect.ValueOf(&pod.Spec.Volumes[0].VolumeSource).Elem().Field(i)
		source.Set(reflect.New(source.Type().Elem()))
		there, alone := cluster.Admit(t.Context(), pod), standalone.Admit(t.Context(), pod)
		switch {
		case there != nil:
			got[name] = rejected
			assert.Equal(t, "PodFeatureUnsupported", there.Reason)
			assert.Equal(t, `Volume "data" (`+name+`): no plugin of the node supports it`, there.Message)
		case alone != nil:
			got[name] = migrated
		case name == "persistentVolumeClaim" || name == "ephemeral":
			got[name] = claim
		default:
			got[name] = supported
		}
	}
	assert.Equal(t, want, got)

	iscsi := &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{}}}}}}
	own := Support{Plugins: []volume.Plugin{&volumetest.Plugin{Kind: "iscsi", Supports: func(s *volume.Spec) bool { return s.Volume.ISCSI != nil }}}}
	assert.Nil(t, own.Admit(t.Context(), iscsi), "a plugin of Adjust.Volumes")
	assert.NotNil(t, own.Admit(t.Context(), &v1.Pod{Spec: v1.PodSpec{Volumes: []v1.Volume{{Name: "x"}}}}), "no source")
}

// Each field of PersistentVolumeSource: supported by a plugin, migrated to a CSI driver, or not
// supported. A pod with a claim for one of the last waits; the event FailedMount names the kind.
func TestPersistentVolumeSources(t *testing.T) {
	const supported, migrated, waits = "supported", "migrated", "waits"
	want := map[string]string{
		"csi": supported, "hostPath": supported, "local": supported, "nfs": supported,
		"awsElasticBlockStore": migrated, "azureDisk": migrated, "azureFile": migrated, "cinder": migrated,
		"gcePersistentDisk": migrated, "portworxVolume": migrated, "vsphereVolume": migrated,
		"cephfs": waits, "fc": waits, "flexVolume": waits, "flocker": waits, "glusterfs": waits,
		"iscsi": waits, "photonPersistentDisk": waits, "quobyte": waits, "rbd": waits, "scaleIO": waits, "storageos": waits,
	}
	vols, err := New(wingtest.Base(t, wingtest.Standalone(t, "")), Deps{})
	require.NoError(t, err)
	supports := func(s *volume.Spec) bool {
		return s.PV.Spec.CSI != nil || slices.ContainsFunc(vols.Support.Plugins, func(p volume.Plugin) bool { return p.CanSupport(s) })
	}
	kinds := reflect.TypeFor[v1.PersistentVolumeSource]()
	got := map[string]string{}
	for i := range kinds.NumField() {
		name, _, _ := strings.Cut(kinds.Field(i).Tag.Get("json"), ",")
		spec := &volume.Spec{Volume: &v1.Volume{Name: "data"}, PV: new(v1.PersistentVolume)}
		source := reflect.ValueOf(&spec.PV.Spec.PersistentVolumeSource).Elem().Field(i)
		source.Set(reflect.New(source.Type().Elem()))
		translated, err := csimigration.Translate(spec, "default")
		switch {
		case supports(spec):
			got[name] = supported
		case err != nil || supports(translated): // an empty source may be invalid
			got[name] = migrated
		default:
			got[name] = waits
		}
	}
	assert.Equal(t, want, got)
}
