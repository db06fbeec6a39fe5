package pause

import "time"

// Aligned returns a random delay of at least least and less than most that ends at a multiple
// of step since the origin of now, the time that has passed: an idle process wakes up rarely
// for its many timers if they have an origin and a step in common. intN is rand.IntN. If no
// multiple of step is between least and most, or step is not positive, it returns least.
func Aligned(now, least, most, step time.Duration, intN func(n int) int) time.Duration {
	if step <= 0 || most-least < step {
		return least
	}
	first := (now + least + step - 1) / step
	return (first+time.Duration(intN(int((most-least)/step))))*step - now
}
