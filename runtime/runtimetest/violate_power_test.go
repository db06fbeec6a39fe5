package runtimetest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

// powerViolations break requirements of the optional interfaces.
var powerViolations = map[string]func(b *broken, rt *runtimetest.Runtime){
	"ExecSeparatesStdoutAndStderr": func(b *broken, rt *runtimetest.Runtime) {
		b.exec = func(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
			res, err := rt.Exec(ctx, id, cmd, timeout)
			res.Stdout, res.Stderr = slices.Concat(res.Stdout, res.Stderr), nil
			return res, err
		}
	},
	"ExecReturnsDocumentedErrors": func(b *broken, rt *runtimetest.Runtime) {
		b.exec = func(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
			res, err := rt.Exec(ctx, id, cmd, timeout)
			if err != nil {
				err = errBroken
			}
			return res, err
		}
	},
	"ExecsRunConcurrently": func(b *broken, rt *runtimetest.Runtime) {
		var last []byte
		b.exec = func(ctx context.Context, id string, cmd []string, timeout time.Duration) (runtime.ExecResult, error) {
			res, err := rt.Exec(ctx, id, cmd, timeout)
			if len(cmd) > 1 && strings.HasPrefix(cmd[1], "hello ") {
				res.Stdout = append(last, res.Stdout...)
				res.Stdout = append(res.Stdout, '!')
			}
			return res, err
		}
	},
	"StreamExecPassesInput": func(b *broken, _ *runtimetest.Runtime) {
		b.stream = func(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
			if s.Stdin != nil && cmd[0] == "echo" {
				s.Stdin = io.LimitReader(s.Stdin, 4096)
			}
			return b.full.StreamExec(ctx, id, cmd, s)
		}
	},
	"StreamExecSeparatesStdoutAndStderr": func(b *broken, _ *runtimetest.Runtime) {
		b.stream = func(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
			s.TTY = false
			return b.full.StreamExec(ctx, id, cmd, s)
		}
	},
	"StreamExecReturnsDocumentedErrors": func(b *broken, _ *runtimetest.Runtime) {
		b.stream = func(ctx context.Context, id string, cmd []string, s runtime.Streams) (int32, error) {
			code, err := b.full.StreamExec(ctx, id, cmd, s)
			if errors.Is(err, context.Canceled) {
				return code, errBroken
			}
			return code, err
		}
	},
	"AttachReachesTheMainProcess": func(b *broken, _ *runtimetest.Runtime) {
		b.attach = func(ctx context.Context, id string, s runtime.Streams) error {
			s.Stdout = io.Discard
			return b.full.Attach(ctx, id, s)
		}
	},
	"PortForwardConnects": func(b *broken, _ *runtimetest.Runtime) {
		b.forward = func(ctx context.Context, uid types.UID, port int32, conn io.ReadWriteCloser) error {
			_ = b.full.PortForward(ctx, uid, port, conn)
			return nil
		}
	},
	"StreamServerReturnsURLs": func(b *broken, _ *runtimetest.Runtime) {
		b.execURL = func(_ context.Context, id string, _ []string, _ runtime.StreamOptions) (*url.URL, error) {
			return url.Parse("http://127.0.0.1:1/exec/" + url.PathEscape(id))
		}
	},
	"LogPathIsHostFile": func(b *broken, _ *runtimetest.Runtime) {
		b.logPath = func(ctx context.Context, id string) (string, error) {
			path, err := b.full.LogPath(ctx, id)
			if text, readErr := os.ReadFile(path); err == nil && readErr == nil && bytes.HasPrefix(text, []byte("2026-")) {
				err = os.WriteFile(path, text[bytes.LastIndexByte(text, 'F')+2:], 0o644) // plain text
			}
			return path, err
		}
	},
	"EachInstanceHasOwnLog": func(b *broken, rt *runtimetest.Runtime) {
		b.logPath = func(ctx context.Context, id string) (string, error) {
			c, uid, err := b.full.find(ctx, id)
			if err != nil {
				return "", err
			}
			return "/logs/" + string(uid) + "/" + c.Name + ".log", nil
		}
	},
	"LogOfUnknownContainerIsNotFound": func(b *broken, _ *runtimetest.Runtime) {
		b.logPath = func(ctx context.Context, id string) (string, error) {
			path, err := b.full.LogPath(ctx, id)
			if err != nil {
				return "/logs/" + id, nil
			}
			return path, nil
		}
	},
	"LogIsReopened": func(b *broken, _ *runtimetest.Runtime) {
		b.reopenLog = func(ctx context.Context, id string) error {
			_, err := b.full.LogPath(ctx, id)
			return err
		}
	},
	"ContainerStatsIdentifyContainer": func(b *broken, _ *runtimetest.Runtime) {
		b.stats = func(ctx context.Context, id string) (*runtime.ContainerStats, error) {
			s, err := b.full.ContainerStats(ctx, id)
			if err == nil {
				_, s.ID, _ = strings.Cut(s.ID, "://")
			}
			return s, err
		}
	},
	"StatsHaveTimes": func(b *broken, _ *runtimetest.Runtime) {
		b.stats = func(ctx context.Context, id string) (*runtime.ContainerStats, error) {
			s, err := b.full.ContainerStats(ctx, id)
			if err == nil {
				s.Memory.At = time.Time{}
			}
			return s, err
		}
	},
	"PodStatsListRunningPods": func(b *broken, rt *runtimetest.Runtime) {
		b.podStats = func(ctx context.Context) ([]runtime.PodStats, error) {
			out, err := b.full.PodStats(ctx)
			pods, listErr := rt.Pods(ctx)
			for _, p := range pods {
				if !slices.ContainsFunc(out, func(s runtime.PodStats) bool { return s.UID == p.UID }) {
					out = append(out, runtime.PodStats{UID: p.UID})
				}
			}
			return out, errors.Join(err, listErr)
		}
	},
	"ImageFSHasMountPointAndTime": func(b *broken, _ *runtimetest.Runtime) {
		b.imageFS = func(context.Context) (images, containers []runtime.FSUsage, err error) { return nil, nil, nil }
	},
	"FeaturesAreReported": func(b *broken, _ *runtimetest.Runtime) {
		shared := map[string]runtime.HandlerFeatures{"": {}}
		b.features = func(context.Context) (runtime.Features, error) { return runtime.Features{Handlers: shared}, nil }
	},
	"CgroupDriverIsReported": func(b *broken, _ *runtimetest.Runtime) {
		b.driver = func(context.Context) (runtime.CgroupDriver, error) { return "SYSTEMD", nil }
	},
	"CheckpointRejectsInvalidRequests": func(b *broken, _ *runtimetest.Runtime) {
		b.checkpoint = func(ctx context.Context, id, location string, _ time.Duration) error {
			if location == "" {
				return nil
			}
			return b.full.Checkpoint(ctx, id, location, 0)
		}
	},
	"PodCheckpointKeepsContainersRunning": func(b *broken, rt *runtimetest.Runtime) {
		b.podCheckpoint = func(ctx context.Context, pod *v1.Pod, location string) error {
			err := b.full.CheckpointPod(ctx, pod, location)
			if err == nil {
				err = rt.Exit(pod.UID, pod.Spec.Containers[0].Name, 0)
			}
			return err
		}
	},
	"ResourcesAreUpdatedInPlace": func(b *broken, rt *runtimetest.Runtime) {
		b.update = func(ctx context.Context, id string, _ v1.ResourceRequirements) error {
			c, uid, err := b.full.find(ctx, id)
			if err != nil {
				return err
			}
			_ = rt.Exit(uid, c.Name, 0)
			rt.Start(uid, c.Name)
			return nil
		}
	},
}
