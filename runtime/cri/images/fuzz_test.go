package images_test

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/images"
)

// Whatever a record contains, the image is granted or rejected with ErrImageNeverPull.
func FuzzRecord(f *testing.F) {
	f.Add(`{"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1","imageRef":"sha256:img:1","credentialMapping":{"img":{"kubernetesSecrets":[{"uid":"u"}]}}}`, `{"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1","image":"img:1"}`)
	f.Add(`{"credentialMapping":{"img":null,"":{"kubernetesSecrets":null}}}`, "")
	f.Fuzz(func(t *testing.T, record, intent string) {
		dir := t.TempDir()
		put(t, record, dir, "pulled", fileName("sha256:img:1"))
		put(t, intent, dir, "pulling", fileName("img:1"))
		service, creds := registry(1), new(credentials)
		service.has("img:1")
		creds.set("a", images.Credential{}, secret("a", "", ""), account("", ""))
		m := newManager(t, images.Config{Service: service, Dir: dir, Credentials: creds})
		_, err := m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: "img:1", PullPolicy: v1.PullNever})
		if reason := why(t, err); reason != "" && reason != "ErrImageNeverPull" {
			t.Fatal(err)
		}
		if left := files(t, dir); len(left) > 2 {
			t.Fatal(left)
		}
	})
}

// Any names of images in a pod and in an allowlist are handled: as InvalidImageName, or
// as an absent image.
func FuzzNames(f *testing.F) {
	for _, name := range []string{"img", "a/b:c@d", "[::1]:5000/x", "@", ":", "*/*", "docker.io/*"} {
		f.Add(name, name)
	}
	f.Fuzz(func(t *testing.T, image, pattern string) {
		m, err := images.New(images.Config{Service: new(fakeService), Dir: t.TempDir(), Verify: images.NeverVerifyAllowlistedImages, VerifyAllowlist: []string{pattern}})
		if err != nil {
			return
		}
		_, err = m.Ensure(t.Context(), images.Request{Pod: podOf("a"), Image: image, PullPolicy: v1.PullNever})
		if reason := why(t, err); reason != "InvalidImageName" && reason != "ErrImageNeverPull" {
			t.Fatalf("%q: %v", image, err)
		}
	})
}
