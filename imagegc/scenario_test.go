package imagegc_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/imagegc"
	"github.com/kubeparts/kubeparts/internal/script"
	"github.com/kubeparts/kubeparts/runtime"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata/*.txt")

// TestScenarios runs testdata/*.txt (package script has the format). The commands are
//
//	disk 100 [high=85 low=80 minage=2m maxage=0 keep=GLOB deny=GLOB tags=2 ttl=GLOB:1h]
//	                                 the disk, in bytes, and the policy; comes first
//	pull nginx:1 app:5 base:5        an image, and its layers with their sizes
//	pin nginx:1   unpin nginx:1      by the runtime
//	lose nginx:1                     another client removed it
//	run web nginx:1   stop web       a container, and its end
//	mount web nginx:1                it is a volume
//	want web nginx:1  unwant web     a pod that has no container yet
//	hold web nginx:1  release        a pod that is being started
//	others 20                        other files take so much
//	fail remove nginx:1 | fail images|uses|space|mend
//	advance 5m   restart             time; the agent
//	detect gc evict plan             a pass that removes nothing, that collects, that
//	                                 removes all candidates; a dry run
func TestScenarios(t *testing.T) {
	script.Run(t, "testdata/*.txt", *update, func(t *testing.T, lines *script.Script) (played *script.Script) {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			s := &scenario{dir: dir}
			var err error
			played, err = lines.Play(func(c *script.Command) ([]string, error) { return s.step(t.Context(), c.Words) })
			require.NoError(t, err)
		})
		return played
	})
}

type scenario struct {
	dir     string
	w       *world
	policy  imagegc.Policy
	m       *imagegc.Manager
	release func()
}

func (s *scenario) step(ctx context.Context, words []string) ([]string, error) {
	if words[0] != "disk" && s.w == nil {
		return nil, errors.New("the disk comes first")
	}
	name := func(i int) string {
		if i < len(words) {
			return words[i]
		}
		return ""
	}
	switch words[0] {
	case "disk":
		return nil, s.begin(words[1:])
	case "pull":
		layers := map[string]uint64{}
		for _, l := range words[2:] {
			layer, size, _ := strings.Cut(l, ":")
			n, err := strconv.ParseUint(size, 10, 64)
			if err != nil {
				return nil, err
			}
			layers[layer] = n
		}
		s.w.pull(words[1], layers)
	case "pin", "unpin":
		s.w.of(name(1), func(i *runtime.Image) { i.Pinned = words[0] == "pin" })
	case "lose":
		_ = s.w.RemoveImage(ctx, runtime.Image{ID: "sha256:" + name(1)})
		s.w.removed = nil
	case "run":
		s.w.use(name(1), name(2))
	case "mount":
		s.w.use(name(1), name(2))
		s.w.uses[len(s.w.uses)-1].Volume = true
	case "stop":
		s.w.unuse(name(1))
	case "want":
		s.w.pods = append(s.w.pods, podWith(name(1), name(2)))
	case "unwant":
		s.w.pods = nil
	case "hold":
		release, err := s.m.AcquireImages(ctx, podWith(name(1), name(2)))
		s.release = release
		return nil, err
	case "release":
		s.release()
	case "others":
		n, err := strconv.ParseUint(name(1), 10, 64)
		s.w.others = n
		return nil, err
	case "fail":
		switch name(1) {
		case "remove":
			s.w.broken["sha256:"+name(2)] = true
		case "mend":
			s.w.broken, s.w.fail = map[string]bool{}, map[string]error{}
		default:
			s.w.fail[name(1)] = errors.New("unavailable")
		}
	case "capacity":
		n, err := strconv.ParseUint(name(1), 10, 64)
		s.w.capacity = n
		return nil, err
	case "advance":
		d, err := time.ParseDuration(name(1))
		time.Sleep(d)
		return nil, err
	case "restart":
		return nil, s.start()
	case "detect":
		_, err := s.m.DryRun(ctx)
		return lines(nil, err), nil
	case "gc":
		report, err := s.m.Collect(ctx)
		return s.effects(report.Freed, err), nil
	case "evict":
		freed, err := s.m.DeleteUnused(ctx)
		return s.effects(freed, err), nil
	case "plan":
		plan, err := s.m.DryRun(ctx)
		var out []string
		if plan.Free > 0 {
			out = append(out, fmt.Sprintf("%d%% used, %d to free, %d by the sizes", plan.UsagePercent, plan.Free, plan.Estimated))
		}
		for _, d := range plan.Decisions {
			out = append(out, strings.ReplaceAll(d.String(), "docker.io/library/", ""))
		}
		return lines(out, err), nil
	default:
		return nil, fmt.Errorf("unknown command %q", words[0])
	}
	return nil, nil
}

// effects returns the effects of a pass.
func (s *scenario) effects(freed uint64, err error) (out []string) {
	for _, id := range s.w.removed {
		out = append(out, "removed "+strings.TrimPrefix(id, "sha256:"))
	}
	if len(s.w.removed) > 0 {
		space, _ := s.w.space(context.Background())
		out = append(out, fmt.Sprintf("freed %d, %d of %d available", freed, space.Available, space.Capacity))
	}
	out = append(out, s.w.events...)
	s.w.removed, s.w.events = nil, nil
	return lines(out, err)
}

func lines(out []string, err error) []string {
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			out = append(out, "error: "+strings.ReplaceAll(strings.TrimSpace(line), "docker.io/library/", ""))
		}
	}
	if len(out) == 0 {
		out = []string{"nothing"}
	}
	return out
}

func (s *scenario) begin(words []string) error {
	n, err := strconv.ParseUint(words[0], 10, 64)
	if err != nil {
		return err
	}
	s.w = newWorld(n)
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		percent, _ := strconv.Atoi(value)
		d, _ := time.ParseDuration(value)
		switch key {
		case "high":
			s.policy.HighPercent = new(int32(percent))
		case "low":
			s.policy.LowPercent = new(int32(percent))
		case "minage":
			s.policy.MinAge = d
		case "maxage":
			s.policy.MaxAge = d
		case "keep":
			s.policy.Keep = append(s.policy.Keep, value)
		case "deny":
			s.policy.Deny = append(s.policy.Deny, value)
		case "tags":
			s.policy.KeepTags = percent
		case "ttl":
			i := strings.LastIndexByte(value, '=')
			after, err := time.ParseDuration(value[i+1:])
			if err != nil {
				return err
			}
			s.policy.TTL = append(s.policy.TTL, imagegc.TTL{Pattern: value[:i], After: after})
		default:
			return fmt.Errorf("unknown word %q", w)
		}
	}
	return s.start()
}

func (s *scenario) start() (err error) {
	cfg := s.w.config()
	cfg.Policy, cfg.Path = s.policy, filepath.Join(s.dir, "images.json")
	cfg.Consumers = func(context.Context) ([]imagegc.Consumer, error) {
		return []imagegc.Consumer{{Name: "logs of pods", Bytes: s.w.others / 2}}, nil
	}
	s.m, err = imagegc.New(cfg)
	return err
}
