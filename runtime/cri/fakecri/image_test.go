package fakecri_test

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

func spec(name string) *runtimeapi.ImageSpec { return &runtimeapi.ImageSpec{Image: name} }

// are returns the configuration of a runtime with these images.
func are(images map[string]fake.Image) fakecri.Config {
	return fakecri.Config{Images: images}
}

// pull pulls an image and returns its ID.
func (n *node) pull(name string) string {
	n.Helper()
	id, err := n.PullImage(n.ctx, spec(name), nil, nil)
	require.NoError(n, err)
	return id
}

// image returns the image of a name, nil if there is none.
func (n *node) image(name string) *runtimeapi.Image {
	n.Helper()
	resp, err := n.ImageStatus(n.ctx, spec(name), false)
	require.NoError(n, err)
	return resp.Image
}

// took runs f and returns its duration.
func took(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func TestAnImageHasTheNamesThatContainerdGivesIt(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		digest := "sha256:" + strings.Repeat("a", 64)
		for _, test := range []struct{ name, repo, tag string }{
			{"busybox", "docker.io/library/busybox", ":latest"},
			{"busybox:1.36", "docker.io/library/busybox", ":1.36"},
			{"me/app:1", "docker.io/me/app", ":1"},
			{"registry.example:5000/app", "registry.example:5000/app", ":latest"},
			{"app@" + digest, "docker.io/library/app", ""},
			{"tagged:1@" + digest, "docker.io/library/tagged", ""},
		} {
			id := n.pull(test.name)
			img := n.image(test.name)
			require.NotNil(n, img, test.name)
			assert.Equal(n, id, img.Id)
			assert.Regexp(n, "^sha256:[0-9a-f]{64}$", id)
			if test.tag != "" {
				assert.Equal(n, []string{test.repo + test.tag}, img.RepoTags)
				assert.Regexp(n, "^"+test.repo+"@sha256:[0-9a-f]{64}$", img.RepoDigests[0])
			} else {
				assert.Empty(n, img.RepoTags)
				assert.Contains(n, img.RepoDigests, test.repo+"@"+digest)
			}
			for _, same := range append([]string{id, id[7:], id[7:20]}, img.RepoDigests...) {
				assert.Equal(n, id, n.image(same).GetId(), "%s is %s", same, test.name)
			}
		}
		assert.Equal(n, n.image("app@"+digest).Id, n.image("tagged@"+digest).Id, "a digest identifies one image")
		assert.NotEqual(n, n.image("busybox").Id, n.image("busybox:1.36").Id)
		list, err := n.ListImages(n.ctx, nil)
		require.NoError(n, err)
		assert.Len(n, list, 5)
	})
}

func TestTheSameNameIsTheSameImageEverywhere(t *testing.T) {
	var ids []string
	for range 2 {
		on(t, fakecri.Config{}, func(n *node) {
			id := n.pull("busybox")
			assert.Equal(n, id, n.pull(n.image("busybox").RepoDigests[0]), "the digest identifies the same image")
			ids = append(ids, id)
		})
	}
	assert.Equal(t, ids[0], ids[1])
}

func TestAMissingImageFailsOnlyItsContainers(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		for _, name := range []string{"busybox", "UPPER", "@@@", "sha256:", "sha256:" + strings.Repeat("a", 64)} {
			assert.Nil(n, n.image(name), name)
			assert.NoError(n, n.RemoveImage(n.ctx, spec(name)), name)
		}
		_, err := n.ImageStatus(n.ctx, spec(""), false)
		hasCode(n, codes.Unknown, err)
		hasCode(n, codes.Unknown, n.RemoveImage(n.ctx, spec("")))
		for _, name := range []string{"", "UPPER", "@@@"} {
			_, err := n.PullImage(n.ctx, spec(name), nil, nil)
			hasCode(n, codes.Unknown, err)
		}
		sandbox := n.sandbox("a")
		_, err = n.CreateContainer(n.ctx, sandbox, containerConfig("a", "web"), podConfig("a"))
		hasCode(n, codes.NotFound, err)
	})
}

func TestAnImageHasTheFieldsOfItsBehavior(t *testing.T) {
	on(t, are(map[string]fake.Image{
		"app":   {User: "1000:1000", Layers: []fake.Layer{{Name: "base", Size: 100}, {Size: 20}}, Pinned: true, Present: true},
		"app:2": {User: "nobody:nogroup"},
		"*":     {Layers: []fake.Layer{{Size: 7}}},
	}), func(n *node) {
		list, err := n.ListImages(n.ctx, nil)
		require.NoError(n, err)
		require.Len(n, list, 1, "one is present from the beginning")
		img := list[0]
		assert.Equal(n, []string{"docker.io/library/app:latest"}, img.RepoTags)
		assert.EqualValues(n, 120, img.Size)
		assert.EqualValues(n, 1000, img.Uid.GetValue())
		assert.Empty(n, img.Username)
		assert.True(n, img.Pinned)

		n.pull("app:1")
		assert.EqualValues(n, 120, n.image("app:1").Size, "a name without a tag matches every tag")
		n.pull("app:2")
		assert.Equal(n, "nobody", n.image("app:2").Username)
		assert.Nil(n, n.image("app:2").Uid)
		assert.EqualValues(n, 1<<20, n.image("app:2").Size)
		assert.False(n, n.image("app:2").Pinned)
		n.pull("other")
		assert.EqualValues(n, 7, n.image("other").Size)

		resp, err := n.ImageStatus(n.ctx, spec("app"), true)
		require.NoError(n, err)
		assert.Contains(n, resp.Info["info"], `"base"`)
	})
}

func TestAPullTakesItsTimeOnce(t *testing.T) {
	on(t, are(map[string]fake.Image{"app": {PullTime: 10 * time.Second}}), func(n *node) {
		ended := make(chan time.Duration, 3)
		start := time.Now()
		for i := range 3 {
			time.AfterFunc(time.Duration(i)*3*time.Second, func() {
				_, err := n.PullImage(n.ctx, spec("app"), nil, nil)
				assert.NoError(n, err)
				ended <- time.Since(start)
			})
		}
		for range 3 {
			assert.Equal(n, 10*time.Second, <-ended, "they are one pull")
		}
		assert.Zero(n, took(func() { n.pull("app") }), "the image is present")
		assert.Equal(n, 10*time.Second, took(func() { n.pull("app:2") }))
		require.NoError(n, n.RemoveImage(n.ctx, spec("app")))
		assert.Equal(n, 10*time.Second, took(func() { n.pull("app") }))
	})
}

func TestACanceledPullDoesNotAffectOthers(t *testing.T) {
	on(t, are(map[string]fake.Image{"app": {PullTime: 10 * time.Second}}), func(n *node) {
		one, cancel := context.WithTimeout(n.ctx, 4*time.Second)
		defer cancel()
		other := make(chan error, 1)
		go func() {
			_, err := n.PullImage(n.ctx, spec("app"), nil, nil)
			other <- err
		}()
		synctest.Wait()
		_, err := n.PullImage(one, spec("app"), nil, nil)
		hasCode(n, codes.DeadlineExceeded, err)
		assert.Nil(n, n.image("app"))
		assert.NoError(n, <-other)
		assert.NotNil(n, n.image("app"))

		// A pull whose callers have all canceled starts from the beginning.
		require.NoError(n, n.RemoveImage(n.ctx, spec("app")))
		alone, cancelAlone := context.WithTimeout(n.ctx, 9*time.Second)
		defer cancelAlone()
		_, err = n.PullImage(alone, spec("app"), nil, nil)
		hasCode(n, codes.DeadlineExceeded, err)
		assert.Equal(n, 10*time.Second, took(func() { n.pull("app") }))
	})
}

func TestAPullEndsWithTheDaemon(t *testing.T) {
	on(t, are(map[string]fake.Image{"app": {PullTime: 10 * time.Second}}), func(n *node) {
		time.AfterFunc(5*time.Second, n.Down)
		var err error
		assert.Equal(n, 5*time.Second, took(func() { _, err = n.PullImage(n.ctx, spec("app"), nil, nil) }))
		hasCode(n, codes.Unavailable, err)
		n.Up()
		assert.Nil(n, n.image("app"))
		assert.Equal(n, 10*time.Second, took(func() { n.pull("app") }))
		n.Down()
		n.Up()
		assert.NotNil(n, n.image("app"), "pulled images are kept")
	})
}

func TestPullsFailByTheirBehavior(t *testing.T) {
	on(t, are(map[string]fake.Image{
		"never": {PullError: "RegistryUnavailable: no route", PullTime: time.Second},
		"third": {PullError: "slow down", PullFails: 2},
		"first": {PullFails: 1},
	}), func(n *node) {
		for range 3 {
			var err error
			assert.Equal(n, time.Second, took(func() { _, err = n.PullImage(n.ctx, spec("never"), nil, nil) }))
			require.Equal(n, codes.Unknown, status.Code(err))
			assert.Equal(n, "RegistryUnavailable: no route", status.Convert(err).Message(), "unchanged: the prefix determines the reason (img-9)")
		}
		for i := range 2 {
			_, err := n.PullImage(n.ctx, spec("third"), nil, nil)
			assert.ErrorContains(n, err, "slow down", i)
		}
		n.pull("third")
		_, err := n.PullImage(n.ctx, spec("first"), nil, nil)
		assert.ErrorContains(n, err, "docker.io/library/first:latest")
		n.pull("first")
		assert.Nil(n, n.image("never"))
	})
}

func TestAPrivateImageRequiresItsPassword(t *testing.T) {
	on(t, are(map[string]fake.Image{"app": {Auth: "me:secret", PullTime: time.Hour}}), func(n *node) {
		for _, auth := range []*runtimeapi.AuthConfig{
			nil, {}, {Username: "me"}, {Username: "me", Password: "wrong"}, {Auth: "?"}, {Auth: base64.StdEncoding.EncodeToString([]byte("me:"))},
		} {
			_, err := n.PullImage(n.ctx, spec("app"), auth, nil)
			hasCode(n, codes.Unknown, err)
		}
		for _, auth := range []*runtimeapi.AuthConfig{
			{Username: "me", Password: "secret"}, {Auth: base64.StdEncoding.EncodeToString([]byte("me:secret"))},
		} {
			_, err := n.PullImage(n.ctx, spec("app"), auth, nil)
			assert.NoError(n, err)
		}
		_, err := n.PullImage(n.ctx, spec("app"), nil, nil)
		hasCode(n, codes.Unknown, err)
	})
}

func TestARemovedImageGoesWithAllItsNames(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		id := n.pull("app")
		digest := n.image("app").RepoDigests[0]
		n.pull("other/app@" + strings.SplitN(digest, "@", 2)[1])
		require.Len(n, n.image("app").RepoDigests, 2)
		require.NoError(n, n.RemoveImage(n.ctx, spec(id[7:20])))
		for _, name := range []string{"app", digest, id, "other/app@" + strings.SplitN(digest, "@", 2)[1]} {
			assert.Nil(n, n.image(name))
		}
		list, err := n.ListImages(n.ctx, nil)
		require.NoError(n, err)
		assert.Empty(n, list)
	})
}

func TestTheSpaceOfImagesIsThatOfTheirLayers(t *testing.T) {
	shared := fake.Layer{Name: "base", Size: 100 << 20}
	cfg := does(fake.Behavior{Disk: fake.Curve{Points: []fake.Point{{Value: 0}, {At: 10 * time.Second, Value: 1000}}}})
	cfg.Images = map[string]fake.Image{
		"registry.example/web": {Layers: []fake.Layer{shared, {Size: 10 << 20}}},
		"job":                  {Layers: []fake.Layer{shared, {Size: 1 << 20}}},
	}
	on(t, cfg, func(n *node) {
		used := func() int64 {
			resp, err := n.ImageFsInfo(n.ctx)
			require.NoError(n, err)
			require.Len(n, resp.ImageFilesystems, 1)
			fs := resp.ImageFilesystems[0]
			assert.Empty(n, resp.ContainerFilesystems, "it is the same one")
			assert.Equal(n, time.Now().UnixNano(), fs.Timestamp)
			assert.NotEmpty(n, fs.FsId.Mountpoint)
			assert.Equal(n, (fs.UsedBytes.Value+16<<10-1)/(16<<10), fs.InodesUsed.Value)
			return int64(fs.UsedBytes.Value)
		}
		assert.Zero(n, used())
		n.pull("registry.example/web:1")
		assert.EqualValues(n, 110<<20, used())
		n.pull("job")
		assert.EqualValues(n, 111<<20, used(), "a shared layer counts once")
		id, _ := n.started()
		time.Sleep(5 * time.Second)
		assert.EqualValues(n, 111<<20+500, used())
		require.NoError(n, n.RemoveImage(n.ctx, spec("registry.example/web:1")))
		assert.EqualValues(n, 111<<20+500, used(), "a container still has its layers")
		require.NoError(n, n.StopContainer(n.ctx, id, 0))
		time.Sleep(time.Minute)
		assert.EqualValues(n, 111<<20+500, used(), "an exited one as well, and the files it wrote")
		require.NoError(n, n.RemoveContainer(n.ctx, id))
		assert.EqualValues(n, 101<<20, used())
		require.NoError(n, n.RemoveImage(n.ctx, spec("job")))
		assert.Zero(n, used())
	})
}

func TestListsOfImagesCanBeStale(t *testing.T) {
	stale := time.Duration(0)
	on(t, fakecri.Config{Faults: func(c fake.Call) fake.Fault {
		if c.Method == "ListImages" {
			return fake.Fault{Stale: stale}
		}
		return fake.Fault{}
	}}, func(n *node) {
		tags := func(age time.Duration) (tags []string) {
			stale = age
			list, err := n.ListImages(n.ctx, nil)
			require.NoError(n, err)
			for _, img := range list {
				tags = append(tags, strings.TrimPrefix(img.RepoTags[0], "docker.io/library/"))
			}
			return tags
		}
		n.pull("a")
		time.Sleep(10 * time.Second)
		n.pull("b")
		time.Sleep(10 * time.Second)
		require.NoError(n, n.RemoveImage(n.ctx, spec("a")))
		time.Sleep(10 * time.Second)
		assert.Equal(n, []string{"b:latest"}, tags(0))
		assert.ElementsMatch(n, []string{"a:latest", "b:latest"}, tags(15*time.Second))
		assert.Equal(n, []string{"a:latest"}, tags(25*time.Second))
		assert.Empty(n, tags(time.Hour))
	})
}

func TestNewRejectsInvalidImages(t *testing.T) {
	for want, images := range map[string]map[string]fake.Image{
		"image Busybox: invalid reference format":              {"Busybox": {}},
		`image a: "pull=-1ns": -1ns is negative`:               {"a": {PullTime: -1}},
		"image *: cannot be present":                           {"*": {Present: true}},
		"is the same image as":                                 {"a": {}, "docker.io/library/a": {}},
		`image b: layer "x" has 2 bytes here, and 1 elsewhere`: {"a": {Layers: []fake.Layer{{Name: "x", Size: 1}}}, "b": {Layers: []fake.Layer{{Name: "x", Size: 2}}}},
	} {
		_, err := fakecri.New(are(images))
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "fakecri: Config: ")
	}
}
