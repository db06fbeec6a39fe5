package cri

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestMissingFieldsOfResponsesAreErrors(t *testing.T) {
	version := func(change func(*runtimeapi.VersionResponse)) error {
		v := &runtimeapi.VersionResponse{Version: "0.1.0", RuntimeName: "r", RuntimeVersion: "1", RuntimeApiVersion: "v1"}
		change(v)
		return verifyVersion(v)
	}
	sandbox := func(change func(*runtimeapi.PodSandboxStatus)) error {
		s := &runtimeapi.PodSandboxStatus{Id: "s", CreatedAt: 1, Metadata: &runtimeapi.PodSandboxMetadata{Name: "n", Namespace: "ns", Uid: "u"}}
		change(s)
		return verifySandbox(&runtimeapi.PodSandboxStatusResponse{Status: s})
	}
	container := func(change func(*runtimeapi.ContainerStatus)) error {
		s := &runtimeapi.ContainerStatus{
			Id: "c", CreatedAt: 1, Metadata: &runtimeapi.ContainerMetadata{Name: "n"}, Image: &runtimeapi.ImageSpec{Image: "i"}, ImageRef: "r",
		}
		change(s)
		return verifyContainer(&runtimeapi.ContainerStatusResponse{Status: s})
	}
	type (
		v = *runtimeapi.VersionResponse
		s = *runtimeapi.PodSandboxStatus
		c = *runtimeapi.ContainerStatus
	)
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"rt-145 whole", version(func(v) {}), ""},
		{"rt-145 version", version(func(v v) { v.Version = "" }), "the runtime gave no version"},
		{"rt-145 name", version(func(v v) { v.RuntimeName = "" }), "the runtime gave no runtime name"},
		{"rt-145 runtime version", version(func(v v) { v.RuntimeVersion = "" }), "the runtime gave no runtime version"},
		{"rt-145 API version", version(func(v v) { v.RuntimeApiVersion = "" }), "the runtime gave no runtime API version"},
		{"rt-145 nothing", verifyVersion(nil), "the runtime gave no version, no runtime name, no runtime version, no runtime API version"},
		{"rt-146 sandbox whole", sandbox(func(s) {}), ""},
		{"rt-146 sandbox id", sandbox(func(s s) { s.Id = "" }), "the runtime gave no id"},
		{"rt-146 sandbox metadata", sandbox(func(s s) { s.Metadata = nil }), "the runtime gave no metadata"},
		{"rt-146 sandbox name", sandbox(func(s s) { s.Metadata.Name = "" }), "the runtime gave no pod name"},
		{"rt-146 sandbox namespace", sandbox(func(s s) { s.Metadata.Namespace = "" }), ""},
		{"rt-146 sandbox uid", sandbox(func(s s) { s.Metadata.Uid = "" }), "the runtime gave no pod UID"},
		{"rt-146 sandbox createdAt", sandbox(func(s s) { s.CreatedAt = 0 }), "the runtime gave no time of creation"},
		{"rt-146 sandbox nil", verifySandbox(nil), "the runtime gave no metadata"},
		{"rt-146 container whole", container(func(c) {}), ""},
		{"rt-146 container id", container(func(c c) { c.Id = "" }), "the runtime gave no id"},
		{"rt-146 container metadata", container(func(c c) { c.Metadata = nil }), "the runtime gave no metadata"},
		{"rt-146 container name", container(func(c c) { c.Metadata.Name = "" }), "the runtime gave no container name"},
		{"rt-146 container createdAt", container(func(c c) { c.CreatedAt = 0 }), "the runtime gave no time of creation"},
		{"rt-146 container image", container(func(c c) { c.Image = nil }), "the runtime gave no image"},
		{"rt-146 container image of no name", container(func(c c) { c.Image.Image = "" }), "the runtime gave no image"},
		{"rt-146 container imageRef", container(func(c c) { c.ImageRef = "" }), "the runtime gave no image reference"},
		{"rt-146 container nil", verifyContainer(nil), "the runtime gave no metadata"},
		{"rt-147 an ID", verifyID("sandbox", "x"), ""},
		{"rt-147 sandbox", verifyID("sandbox", ""), "the runtime gave the new sandbox no ID"},
		{"rt-147 container", verifyID("container", ""), "the runtime gave the new container no ID"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.want == "" {
				require.NoError(t, tc.err)
				return
			}
			assert.EqualError(t, tc.err, tc.want)
		})
	}
}
