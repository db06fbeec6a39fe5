package eviction_test

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/internal/script"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata/*.txt")

// TestScenarios runs testdata/*.txt (package script has the format): the usage of a
// node over time and the resulting actions. A pod's usage is released when it ends.
// Commands, before the first pass:
//
//	hard|reclaim SIGNAL VALUE      a threshold; the minimum reclaim beyond it
//	soft SIGNAL VALUE GRACE        a soft one
//	defaults [merge]               the hard ones of the kubelet, on Linux
//	policy KEY=VALUE …             maxgrace=SECONDS transition=DURATION transition.SIGNAL=DURATION victims=N
//	                               enforce=pods locallimits=off machine=BYTES holdoff=DURATION
//	layout single|dedicated|split  which file systems there are
//	late DURATION                  how long the resources of a terminated pod stay in use
//
// at any time:
//
//	node SIGNAL USED/CAPACITY      the usage of other processes, and the capacity
//	missing|there SIGNAL           it is not measured any more, or is again
//	pod NAME KEY=VALUE …           uses.SIGNAL=AMOUNT request.RESOURCE=Q limit.RESOURCE=Q priority=N grace=SECONDS stats=off
//	                               static=yes volume.NAME=USED/LIMIT logs=AMOUNT total=AMOUNT image=BYTES
//	                               spare=REASON never=REASON unkillable=yes|no init=NAME
//	frees STEP SIGNAL AMOUNT       the amount that a step will free
//	takes STEP SECONDS             how long it takes
//	fails STEP
//	lags SECONDS                   figures are taken so often only
//	stale|measured                 the figures stay those of the last time; or are new
//	silent|answers                 there is no summary
//	partial|whole                  the summary is incomplete: pods with stats=off, missing signals
//	pass                           one synchronous pass, a millisecond later
//	run                            Run runs from now on
//	advance SECONDS                time passes
//	admit NAME                     may this pod start?
//	explain                        the reasons of the last evictions
//	rank SIGNAL                    the order of a plan
func TestScenarios(t *testing.T) { scenarios(t, false, *update) }

// The usage of pods that no plan depends on makes no difference.
func TestScenariosWithTheNodeMeasuredAlone(t *testing.T) { scenarios(t, true, false) }

func scenarios(t *testing.T, alone, update bool) {
	script.Run(t, "testdata/*.txt", update, func(t *testing.T, s *script.Script) (played *script.Script) {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			st := &scenario{world: newWorld(), ctx: ctx, settings: eviction.Settings{
				Hard: map[string]string{}, Soft: map[string]string{}, SoftGracePeriod: map[string]string{}, MinimumReclaim: map[string]string{},
			}}
			st.alone = alone
			var err error
			played, err = s.Play(st.command)
			require.NoError(t, err)
			stop()
			synctest.Wait()
		})
		return played
	})
}

type scenario struct {
	*world
	ctx      context.Context
	settings eviction.Settings
	mgr      *eviction.Manager
	last     eviction.Result
}

func (s *scenario) command(c *script.Command) ([]string, error) {
	if err := s.do(c); err != nil {
		return nil, c.Errorf("%w", err)
	}
	synctest.Wait()
	return s.take(), nil
}

func (s *scenario) start() error {
	if s.mgr != nil {
		return nil
	}
	thresholds, err := s.settings.Parse()
	if err != nil {
		return err
	}
	s.config.Policy.Thresholds = thresholds
	s.config.Hooks.Passed = func(r eviction.Result, err error) {
		s.last = r
		if err != nil {
			s.note("the pass fails: " + err.Error())
		}
	}
	s.mgr, err = s.manager()
	return err
}

func (s *scenario) do(c *script.Command) (err error) {
	switch c.Name() {
	case "hard":
		s.settings.Hard[c.Arg(1)] = c.Arg(2)
	case "soft":
		s.settings.Soft[c.Arg(1)], s.settings.SoftGracePeriod[c.Arg(1)] = c.Arg(2), c.Arg(3)
	case "reclaim":
		s.settings.MinimumReclaim[c.Arg(1)] = c.Arg(2)
	case "defaults":
		if c.Arg(1) != "merge" {
			s.settings.Hard = nil
		}
		s.settings = s.settings.WithDefaults("linux", c.Arg(1) == "merge")
	case "policy":
		return s.pairs(c.Words[1:], s.policy)
	case "layout":
		s.layout = map[string]eviction.Layout{"dedicated": eviction.DedicatedImageFS, "split": eviction.SplitImageFS}[c.Arg(1)]
	case "late":
		s.late, err = time.ParseDuration(c.Arg(1))
		return err
	case "node":
		used, capacity, _ := strings.Cut(c.Arg(2), "/")
		s.other[eviction.Signal(c.Arg(1))], s.capacity[eviction.Signal(c.Arg(1))] = amount(used), amount(capacity)
	case "missing", "there":
		s.missing[eviction.Signal(c.Arg(1))] = c.Name() == "missing"
	case "pod":
		return s.pod(c.Arg(1), c.Words[2:])
	case "frees":
		s.yields[string(c.Arg(1))] = map[eviction.Signal]int64{eviction.Signal(c.Arg(2)): amount(c.Arg(3))}
	case "takes":
		s.takes[string(c.Arg(1))], err = c.Seconds(2)
		return err
	case "fails":
		s.failStep[string(c.Arg(1))] = true
	case "lags":
		s.lag, err = c.Seconds(1)
		return err
	case "stale", "measured":
		s.stale = c.Name() == "stale"
	case "silent", "answers":
		s.world.summary = c.Name() == "answers"
	case "partial", "whole":
		s.broken = c.Name() == "partial"
	case "pass":
		if err := s.start(); err != nil {
			return err
		}
		time.Sleep(time.Millisecond) // so that the figures are not those of the last pass
		_, _ = s.mgr.Pass(s.ctx)
	case "run":
		if err := s.start(); err != nil {
			return err
		}
		go func() { _ = s.mgr.Run(s.ctx) }()
	case "advance":
		d, err := c.Seconds(1)
		if err != nil {
			return err
		}
		time.Sleep(d)
	case "admit":
		if refused := s.mgr.Admit(context.Background(), s.find(c.Arg(1)).Pod); refused != nil {
			s.note("refused: " + refused.Reason + ": " + refused.Message)
		} else {
			s.note("admitted")
		}
	case "explain":
		for _, e := range s.last.Evicted {
			s.note(e.Explanation.String())
		}
	case "rank":
		plan := s.last.Plan
		if s.last.After != nil {
			plan = s.last.After
		}
		for _, r := range plan.Ranking {
			s.note(strings.TrimSuffix(fmt.Sprintf("%s %s", r.Pod.Name, r.RankReason), " "))
		}
	default:
		return fmt.Errorf("no command %q", c.Name())
	}
	return nil
}

func (s *scenario) pairs(words []string, set func(key, value string) error) error {
	for _, w := range words {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			return fmt.Errorf("%q is not KEY=VALUE", w)
		}
		if err := set(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *scenario) policy(key, value string) (err error) {
	p := &s.config.Policy
	if signal, ok := strings.CutPrefix(key, "transition."); ok {
		if p.Transitions == nil {
			p.Transitions = map[eviction.Signal]time.Duration{}
		}
		p.Transitions[eviction.Signal(signal)], err = time.ParseDuration(value)
		return err
	}
	switch key {
	case "maxgrace":
		p.MaxPodGracePeriod, err = strconv.ParseInt(value, 10, 64)
	case "victims":
		p.MaxVictims, err = strconv.Atoi(value)
	case "transition":
		p.Transition, err = time.ParseDuration(value)
	case "holdoff":
		s.config.Policy.KillBackoff, err = time.ParseDuration(value)
	case "enforce":
		s.settings.EnforcePods = true
	case "locallimits":
		p.NoLocalLimits = true
	case "machine":
		s.config.Policy.MachineMemory = amount(value)
	default:
		return fmt.Errorf("no policy %q", key)
	}
	return err
}

func (s *scenario) pod(name string, words []string) error {
	p := s.find(name)
	if p == nil {
		p = &worldPod{
			Pod: podOf(name), stats: true, uses: map[eviction.Signal]int64{}, volumes: map[string]int64{},
			logs: map[string]int64{}, rootfs: map[string]int64{},
		}
		p.CreationTimestamp.Time = time.Now()
		s.pods = append(s.pods, p)
	}
	main := &p.Spec.Containers[0]
	return s.pairs(words, func(key, value string) (err error) {
		key, of, _ := strings.Cut(key, ".")
		switch key {
		case "uses":
			p.uses[eviction.Signal(of)] = amount(value)
		case "request":
			main.Resources.Requests = quantities(main.Resources.Requests, v1.ResourceName(of), resource.MustParse(value))
		case "limit":
			main.Resources.Limits = quantities(main.Resources.Limits, v1.ResourceName(of), resource.MustParse(value))
		case "priority":
			n := int32(amount(value))
			p.Spec.Priority = &n
		case "grace":
			n := amount(value)
			p.Spec.TerminationGracePeriodSeconds = &n
		case "stats":
			p.stats = value != "off"
		case "static":
			p.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		case "tolerates":
			p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: value, Operator: v1.TolerationOpExists})
		case "volume":
			used, limit, limited := strings.Cut(value, "/")
			v := v1.Volume{Name: of, VolumeSource: v1.VolumeSource{EmptyDir: new(v1.EmptyDirVolumeSource)}}
			if limited {
				q := resource.MustParse(limit)
				v.EmptyDir.SizeLimit = &q
			}
			if _, ok := p.volumes[of]; !ok {
				p.Spec.Volumes = append(p.Spec.Volumes, v)
			}
			p.volumes[of] = amount(used)
		case "logs":
			p.logs["main"] = amount(value)
		case "total":
			n := amount(value)
			p.total = &n
		case "image":
			p.imageSize = amount(value)
		case "spare", "never":
			p.spare = spare{Reason: value, Absolute: key == "never"}
		case "unkillable":
			p.unkilled = value == "yes"
		default:
			err = fmt.Errorf("a pod has no %q", key)
		}
		return err
	})
}

// amount reads 100Mi, -5, or 1e3.
func amount(text string) int64 {
	q := resource.MustParse(text)
	return q.Value()
}
