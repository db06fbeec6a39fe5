package sim

import "math/rand/v2"

// withVolumes adds volumes to half of the pods of one seed in three, as withProbes adds
// probes, and faults of their calls.
func withVolumes(seed uint64, o Options, s Schedule) Schedule {
	if seed%3 != 2 {
		return s
	}
	for i := range s {
		if roll := hash(seed, 12, 0, 0, string(s[i].podUID())); s[i].Do == Add && roll%2 == 0 {
			s[i].Shape.Volumes = 1 + int64(roll>>8%3)
		}
	}
	if o.NoFaults {
		return s
	}
	d := draw{Rand: rand.New(rand.NewPCG(seed, 0x701e))}
	for range 1 + d.IntN(2) {
		fault := Step{
			At: d.at(o), Do: Fault, Calls: pick(&d, setUpCall, tearDownCall),
			Kind: pick(&d, Error, Error, Lost, Slow, Hung), Percent: pick(&d, 50, 100), For: d.seconds(60),
		}
		if fault.Kind == Slow {
			fault.Delay = d.seconds(20)
		}
		s = s.with(fault)
	}
	return s
}
