package replay

import (
	"slices"
	"strconv"
	"time"

	"github.com/kubeparts/kubeparts/sim/record"
)

// cutIdle shortens the time between frames: all gaps at once, and then each.
func (s *shrinker) cutIdle() {
	for _, least := range []time.Duration{time.Second, 10 * time.Second} {
		frames, changed := s.best, false
		for i := 1; i < len(frames); i++ {
			if gap := frames[i].At - frames[i-1].At; gap > least {
				frames, changed = shifted(frames, i, gap-least), true
			}
		}
		if changed && s.try(frames) {
			break
		}
	}
	for i := 1; i < len(s.best); i++ {
		for gap := s.best[i].At - s.best[i-1].At; gap > time.Second && !s.done(); gap = s.best[i].At - s.best[i-1].At {
			if !s.try(shifted(s.best, i, gap-time.Second)) && !s.try(shifted(s.best, i, gap/2)) {
				break
			}
		}
	}
}

// shifted returns frames of which those from i are earlier by d, and all times in them
// that are later than those before.
func shifted(frames []record.Frame, i int, d time.Duration) []record.Frame {
	limit := frames[i].At - d
	return mapTimes(frames, func(at time.Duration) time.Duration {
		if at <= limit {
			return at
		}
		return max(limit, at-d)
	})
}

// mapTimes returns frames with changed times since the start of the recording: those of frames, and
// those in pods, statuses, requests and answers that are not earlier than the start. f must be monotone.
func mapTimes(frames []record.Frame, f func(time.Duration) time.Duration) []record.Frame {
	out := slices.Clone(frames)
	start := frames[0].Header.Start
	for i := range out {
		t, err := frameTree(out[i])
		if err != nil {
			continue
		}
		if out[i].Header == nil {
			mapTreeTimes(t, start, f)
			if changed, err := fromTree(t); err == nil {
				out[i] = changed
			}
		}
		out[i].At = f(frames[i].At)
	}
	return out
}

// criTimes are the fields of the CRI with nanoseconds since 1970.
var criTimes = map[string]bool{"createdAt": true, "startedAt": true, "finishedAt": true, "timestamp": true}

func mapTreeTimes(v any, start time.Time, f func(time.Duration) time.Duration) {
	since := func(t time.Time) time.Time {
		if t.Before(start) {
			return t
		}
		return start.Add(f(t.Sub(start)))
	}
	switch v := v.(type) {
	case []any:
		for _, value := range v {
			mapTreeTimes(value, start, f)
		}
	case map[string]any:
		for key, value := range v {
			text, ok := value.(string)
			if !ok {
				mapTreeTimes(value, start, f)
				continue
			}
			if n, err := strconv.ParseInt(text, 10, 64); err == nil && criTimes[key] && n > 0 {
				v[key] = strconv.FormatInt(since(time.Unix(0, n)).UnixNano(), 10)
			} else if t, err := time.Parse(time.RFC3339, text); err == nil {
				v[key] = since(t).UTC().Format(time.RFC3339Nano)
			}
		}
	}
}

// roundTimes rounds times down to a unit.
func roundTimes(frames []record.Frame, unit time.Duration) []record.Frame {
	return mapTimes(frames, func(at time.Duration) time.Duration { return at.Truncate(unit) })
}

// wholeSecond returns frames of a recording that starts at a whole second. Times in messages are adjusted.
func wholeSecond(frames []record.Frame) []record.Frame {
	start := frames[0].Header.Start
	d := start.Sub(start.Truncate(time.Second))
	out := mapTimes(frames, func(at time.Duration) time.Duration { return at })
	for i := range out {
		t, err := frameTree(out[i])
		if err != nil || out[i].Header != nil {
			continue
		}
		mapTreeTimes(t, time.Unix(0, 0), func(at time.Duration) time.Duration { return at - d })
		if changed, err := fromTree(t); err == nil {
			changed.At = out[i].At
			out[i] = changed
		}
	}
	h := *out[0].Header
	h.Start = start.Truncate(time.Second).UTC()
	if !h.Wall.IsZero() {
		h.Wall = h.Start
	}
	out[0].Header = &h
	return out
}
