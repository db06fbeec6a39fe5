package fakecri_test

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

var _ cri.LocalStreams = (*fakecri.Runtime)(nil)

// image returns a container that does what the behaviour of its image says. The
// name is a whole one, as runtimes report images by those.
func image(name string) v1.Container {
	return v1.Container{Image: "fake.test/" + name + ":1", ImagePullPolicy: v1.PullIfNotPresent}
}

// says answers "print <text> <code>" and "block".
func says(ctx context.Context, cmd []string, s runtime.Streams) (int32, error) {
	if cmd[0] == "block" {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	code, err := strconv.ParseInt(cmd[2], 10, 32)
	if err != nil {
		return 0, err
	}
	_, err = io.WriteString(s.Stdout, cmd[1])
	return int32(code), err
}

// The engine of package cri over this runtime keeps the contract of a runtime,
// in virtual time.
func TestTheEngineOverItKeepsTheContract(t *testing.T) {
	images := map[string]fakecri.Behaviour{
		"fake.test/stubborn:1": {IgnoreTerm: true},
		"fake.test/long:1":     {Exec: says},
	}
	for code := range int32(43) {
		images[fmt.Sprintf("fake.test/exit-%d:1", code)] = fakecri.Behaviour{RunFor: 200 * time.Millisecond, ExitCode: code}
	}
	runtimetest.TestRuntime(t, func(t *testing.T) runtime.Runtime {
		fake, err := fakecri.New(fakecri.Config{Behaviours: fakecri.Behaviours{Images: images}})
		require.NoError(t, err)
		dir := t.TempDir()
		rt, err := cri.New(cri.Config{
			Name: "fakecri", Runtime: fake, Images: fake, RootDir: dir + "/root", PodLogsDir: dir + "/logs",
		})
		require.NoError(t, err)
		return rt
	}, runtimetest.Suite{
		Long:     image("long"),
		Exit:     func(code int32) v1.Container { return image(fmt.Sprintf("exit-%d", code)) },
		Stubborn: image("stubborn"),
		Print:    func(text string, code int32) []string { return []string{"print", text, fmt.Sprint(code)} },
		Block:    []string{"block"},
		Within:   func(t *testing.T, body func(t *testing.T)) { synctest.Test(t, body) },
	})
}
