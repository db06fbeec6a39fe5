// Package fakecri is a whole CRI runtime in memory, for tests and simulations.
package fakecri
