// Sums over the buckets of /ui/api/quality. It knows nothing of the page.

/** The end of the time that buckets speak of, in Unix seconds: now, or their own end where they are from files. */
export function endOf({ buckets, bucket_s }, source) {
  if (source !== "files" || !buckets.length) return Date.now() / 1000;
  return Math.max(...buckets.map(({ at }) => at)) + bucket_s;
}

/** {turns, outcomes, problems, first, seconds} of some buckets together. */
export function summed(buckets) {
  const sum = { turns: 0, outcomes: {}, problems: {}, first: [], seconds: [] };
  for (const bucket of buckets) {
    sum.turns += bucket.turns;
    for (const name of ["outcomes", "problems"]) {
      for (const [kind, count] of Object.entries(bucket[name])) sum[name][kind] = (sum[name][kind] ?? 0) + count;
    }
    for (const name of ["first", "seconds"]) {
      bucket[name].forEach((count, index) => (sum[name][index] = (sum[name][index] ?? 0) + count));
    }
  }
  return sum;
}

/** [{model, …sum}], the most used first. */
export function byModel(buckets) {
  const models = new Map();
  for (const bucket of buckets) {
    if (!models.has(bucket.model)) models.set(bucket.model, []);
    models.get(bucket.model).push(bucket);
  }
  return [...models].map(([model, its]) => ({ model, ...summed(its) })).sort((a, b) => b.turns - a.turns);
}

/** How many turns there are whose outcome is known: of these are the shares. */
export const over = (outcomes) => Object.values(outcomes).reduce((sum, count) => sum + count, 0);

/** "71 %"; what is not nothing and not all never reads as such. */
export function percent(part, whole) {
  if (!part || !whole) return "0 %";
  const share = (100 * part) / whole;
  if (share < 1) return "<1 %";
  if (share > 99 && part < whole) return ">99 %";
  return `${Math.round(share)} %`;
}

/**
 * The buckets from `from` to `to` in at most `most` slots of one width, which is a round number of minutes (buckets
 * of more than an hour ago have five):
 * {width_s, slots: [{at, …sum}]}. Slots in which nothing was are there, too.
 */
export function slotted(buckets, bucket_s, from, to, most) {
  const rounds = [5, 10, 15, 20, 30, 60, 120, 180, 360, 720, 1440];
  if (to - from <= 3600) rounds.unshift(1);
  const needed = (to - from) / bucket_s / most;
  const width_s = bucket_s * (rounds.find((round) => round >= needed) ?? 1440 * Math.ceil(needed / 1440));
  const begin = Math.floor(from / width_s) * width_s;
  const slots = [];
  for (let at = begin; at < to; at += width_s) slots.push({ at, its: [] });
  for (const bucket of buckets) slots[Math.floor((bucket.at - begin) / width_s)]?.its.push(bucket);
  return { width_s, slots: slots.map(({ at, its }) => ({ at, ...summed(its) })) };
}

/**
 * The time in s below which a share `q` of the counts is, from a line within its bucket: {seconds, isBeyond}. Beyond
 * the last bound only that bound is known. null without counts.
 */
export function quantile(counts, bounds, q) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (!total) return null;
  const rank = q * total;
  let before = 0;
  for (let index = 0; index < bounds.length; index += 1) {
    const count = counts[index];
    if (count && before + count >= rank) {
      const lower = index ? bounds[index - 1] : 0;
      return { seconds: lower + ((bounds[index] - lower) * (rank - before)) / count, isBeyond: false };
    }
    before += count;
  }
  return { seconds: bounds.at(-1), isBeyond: true };
}
