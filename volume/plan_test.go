package volume

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The loop decides nothing: what is done next follows from these.
func TestNextStep(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	soon, past := now.Add(time.Second), now.Add(-time.Second)
	device := func(state State, change ...func(*deviceLook)) *deviceLook {
		d := &deviceLook{state: state, users: 1}
		for _, f := range change {
			f(d)
		}
		return d
	}
	for name, c := range map[string]struct {
		look look
		want step
		at   time.Time
	}{
		"wanted":                       {look{wanted: true}, setUp, time.Time{}},
		"wanted, uncertain (vol-32)":   {look{wanted: true, state: Uncertain}, setUp, time.Time{}},
		"busy (vol-19)":                {look{wanted: true, busy: true}, nothing, time.Time{}},
		"busy and not wanted":          {look{state: InPlace, busy: true}, nothing, time.Time{}},
		"in back-off":                  {look{wanted: true, notBefore: soon}, nothing, soon},
		"after back-off":               {look{wanted: true, notBefore: past}, setUp, time.Time{}},
		"back-off ends now":            {look{wanted: true, notBefore: now}, setUp, time.Time{}},
		"mounted (F-42)":               {look{wanted: true, state: InPlace}, nothing, time.Time{}},
		"mounted, to refresh (vol-11)": {look{wanted: true, state: InPlace, refresh: true}, refresh, time.Time{}},
		"refresh in back-off":          {look{wanted: true, state: InPlace, refresh: true, notBefore: soon}, nothing, soon},
		"refresh by the clock later":   {look{wanted: true, state: InPlace, refreshAt: soon}, nothing, soon},
		"refresh by the clock now":     {look{wanted: true, state: InPlace, refreshAt: now}, refresh, time.Time{}},
		"too small (vol-16)":           {look{wanted: true, state: InPlace, grow: true}, expand, time.Time{}},
		"too small, in back-off":       {look{wanted: true, state: InPlace, grow: true, notBefore: soon}, nothing, soon},
		"refresh comes before growth":  {look{wanted: true, state: InPlace, grow: true, refresh: true}, refresh, time.Time{}},
		"not attached (vol-17)":        {look{wanted: true, attach: true, attachBy: soon}, nothing, soon},
		"attached too late (vol-20)":   {look{wanted: true, attach: true, attachBy: past}, late, time.Time{}},
		"attached":                     {look{wanted: true, attach: true, attached: true, attachBy: past}, setUp, time.Time{}},
		"not staged (vol-20)":          {look{wanted: true, device: device(NotMounted)}, stage, time.Time{}},
		"maybe staged":                 {look{wanted: true, device: device(Uncertain)}, stage, time.Time{}},
		"being staged":                 {look{wanted: true, device: device(NotMounted, func(d *deviceLook) { d.busy = true })}, nothing, time.Time{}},
		"staging in back-off":          {look{wanted: true, device: device(Uncertain, func(d *deviceLook) { d.notBefore = soon })}, nothing, soon},
		"staged":                       {look{wanted: true, device: device(InPlace)}, setUp, time.Time{}},
		"staged, not attached":         {look{wanted: true, attach: true, attachBy: soon, device: device(InPlace)}, nothing, soon},
		"staged with another label":    {look{wanted: true, device: device(InPlace, func(d *deviceLook) { d.mislabeled = true })}, unstage, time.Time{}},
		"maybe with another label":     {look{wanted: true, device: device(Uncertain, func(d *deviceLook) { d.mislabeled = true })}, unstage, time.Time{}},
		"another label, in back-off":   {look{wanted: true, device: device(Uncertain, func(d *deviceLook) { d.mislabeled, d.notBefore = true, soon })}, nothing, soon},
		"another label, mounted":       {look{wanted: true, state: InPlace, device: device(InPlace, func(d *deviceLook) { d.mislabeled = true })}, nothing, time.Time{}},
		"not wanted, mounted (vol-23)": {look{state: InPlace}, tearDown, time.Time{}},
		"not wanted, uncertain":        {look{state: Uncertain}, tearDown, time.Time{}},
		"not wanted, in back-off":      {look{state: Uncertain, notBefore: soon}, nothing, soon},
		"not wanted, to refresh":       {look{state: InPlace, refresh: true}, tearDown, time.Time{}},
		"not wanted, detached":         {look{state: InPlace, attach: true}, tearDown, time.Time{}},
		"gone":                         {look{}, forget, time.Time{}},
	} {
		got, at := next(c.look, now)
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.at, at, name)
	}
	for name, c := range map[string]struct {
		look deviceLook
		want step
		at   time.Time
	}{
		"used":                  {deviceLook{state: InPlace, users: 1}, nothing, time.Time{}},
		"let go of (vol-24)":    {deviceLook{state: InPlace}, unstage, time.Time{}},
		"maybe staged":          {deviceLook{state: Uncertain}, unstage, time.Time{}},
		"busy":                  {deviceLook{state: Uncertain, busy: true}, nothing, time.Time{}},
		"unstaging in back-off": {deviceLook{state: Uncertain, notBefore: soon}, nothing, soon},
		"gone":                  {deviceLook{}, forget, time.Time{}},
	} {
		got, at := nextDevice(c.look, now)
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.at, at, name)
	}
}

// Section 6.1: 500 ms, doubled, at most 2m2s; another step begins anew.
func TestBackoff(t *testing.T) {
	now := time.Now()
	var f failure
	var delays []time.Duration
	for range 10 {
		f = f.after(setUp, errors.New("x"), now)
		delays = append(delays, f.delay)
		assert.Equal(t, now.Add(f.delay), f.notBefore)
	}
	s := time.Second
	assert.Equal(t, []time.Duration{s / 2, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 64 * s, 122 * s, 122 * s}, delays)
	assert.Equal(t, s/2, f.after(tearDown, errors.New("x"), now).delay)
}
