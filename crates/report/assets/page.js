// What every page that becalm writes does: draws its charts, opens detours, sorts tables, changes the theme.
// The charts come as JSON that says what is drawn (crates/report/src/html/chart.rs); texts and tables are in the page.
'use strict';
(() => {
  const root = document.documentElement;
  const specs = JSON.parse(document.getElementById('data').textContent);
  const narrow = () => window.innerWidth < 640;

  // -- Figures as the terminal writes them: crates/report/src/form/value.rs ------------------------------------------------

  // A number with so many decimals; what lies exactly between two goes to the even digit, as there.
  function fixed(number, decimals) {
    const FURTHER = 25;
    const isHalf = /^50*$/.test(number.toFixed(decimals + FURTHER).slice(-FURTHER));
    const below = Math.floor(Math.abs(number) * 10 ** decimals);
    return isHalf && below % 2 === 0 ? (Math.sign(number) * below / 10 ** decimals).toFixed(decimals) : number.toFixed(decimals);
  }

  function time(ns, count = 3) {
    const whole = Math.abs(Math.round(ns));
    const digits = (number) => String(number).length - 1;
    const step = 10 ** Math.max(digits(whole) - (count - 1), 0);
    const rounded = (Math.floor(whole / step) + (whole % step * 2 >= step ? 1 : 0)) * step;
    const size = digits(rounded);
    const unit = Math.min(Math.floor(size / 3), 3) * 3;
    const decimals = Math.min(Math.max(count - 1 - (size - unit), 0), unit);
    const sign = ns < 0 && rounded > 0 ? '-' : '';
    if (rounded < 1e3) return `${sign}${rounded}ns`;
    if (rounded < 1e6) return `${sign}${(rounded / 1e3).toFixed(decimals)}us`;
    if (rounded < 1e9) return `${sign}${(rounded / 1e6).toFixed(decimals)}ms`;
    return `${sign}${(rounded / 1e9).toFixed(decimals)}s`;
  }

  function picos(ps) {
    return Math.abs(ps) >= 999_500 ? time(Math.trunc((ps + Math.sign(ps) * 500) / 1e3)) : `${threeDigits(ps / 1e3)}ns`;
  }

  function threeDigits(number) {
    if (!Number.isFinite(number)) return '-';
    if (number === 0) return '0';
    const decimalsOf = (value) => Math.min(Math.max(2 - Math.floor(Math.log10(Math.abs(value))), 0), 9);
    const rounded = Number(fixed(number, decimalsOf(number)));
    return fixed(number, decimalsOf(rounded === 0 ? number : rounded));
  }

  const ratio = (value) => `${threeDigits(value * 100)}%`;
  const share = (value) => (value > 0 && value < 0.0005 ? '<0.1%' : `${fixed(value * 100, 1)}%`);
  const grouped = (count) => String(count).replace(/\B(?=(\d{3})+$)/g, ',');
  const rate = (hz) => `${hz >= 999.5 && hz < 1e18 ? grouped(Math.round(hz)) : threeDigits(hz)}/s`;

  function factor(value) {
    if (!Number.isFinite(value)) return '-';
    return value < 9.99995 ? fixed(value, 4) : value < 99.995 ? fixed(value, 2) : fixed(value, 1);
  }

  const seconds = (ns, decimals) => `${(ns / 1e9).toFixed(decimals)}s`;

  const write = {
    time, picos, ratio, factor, rate,
    count: (value) => grouped(Math.round(value)),
    ranks: (value) => grouped(Math.round(value)),
    instant: (value) => seconds(value, 6),
    plain: (value) => (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e6) ? value.toExponential(1) : threeDigits(value)),
  };

  // As a label of an axis: without the zeros that say nothing there.
  function tick(unit, value, digits) {
    const text = unit === 'time' ? time(value, digits) : write[unit](value);
    return unit === 'count' || unit === 'ranks' ? text : text.replace(/\.0+(?!\d)|(\.\d*[1-9])0+(?!\d)/, '$1');
  }

  // -- Colors ---------------------------------------------------------------------------------------------------------

  const probe = document.createElement('span');
  probe.hidden = true;
  document.body.append(probe);

  function color(name) {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  }

  const faded = (name, part) => color(name).replace(/^rgb\((.*)\)$/, `rgba($1, ${part})`);

  // Shapes tell kinds apart where colors do not.
  const DOWN = 'path://M0 0H10L5 9Z';
  const CROSS = 'path://M0 2L2 0L5 3L8 0L10 2L7 5L10 8L8 10L5 7L2 10L0 8L3 5Z';
  const PLUS = 'path://M3.5 0H6.5V3.5H10V6.5H6.5V10H3.5V6.5H0V3.5H3.5Z';
  const SHAPES = {
    nmi: PLUS, irq: 'circle', softirq: 'triangle', workqueue: 'rect', kthread: 'diamond', task: 'circle', fault: CROSS,
    throttling: DOWN, self: PLUS, edge: 'circle', unseen: 'rect', not_traced: CROSS, unknown: 'circle',
  };
  const RARE = 200;
  const COMMON = 4000;
  const SERIES = 8;
  const kindColor = (kind) => color(`kind-${kind}`);
  const seriesColor = (at) => color(`series-${at % SERIES + 1}`);

  // -- What all charts share ------------------------------------------------------------------------------------------

  function base() {
    return {
      animation: false,
      backgroundColor: 'transparent',
      textStyle: { fontFamily: getComputedStyle(document.body).fontFamily, color: color('text') },
      tooltip: {
        // Drawn, never marked up: names in it are whatever ran on the machine.
        renderMode: 'richText',
        confine: true,
        backgroundColor: color('card'),
        borderColor: color('line'),
        borderWidth: 1,
        padding: [8, 12],
        textStyle: { color: color('text'), fontSize: 13, lineHeight: 20 },
      },
    };
  }

  // Laid out before anything else happens, not part by part in later frames.
  const AT_ONCE = { progressive: 0, progressiveThreshold: Infinity };

  // The power of two by which an axis of ranks is divided: ECharts 6.1.0 draws no lines between the ends of ten powers and more.
  const RANK_BASES = [4, 8, 16, 64];
  const FEW = 16;
  function rankBase(spec) {
    const fits = (base) => !(Math.log(spec.max / spec.min) / Math.log(base) > 9.5);
    return spec.max / spec.min <= FEW ? 2 : RANK_BASES.find(fits) ?? RANK_BASES[RANK_BASES.length - 1];
  }

  function axis(spec, extra) {
    const log = spec.scale === 'log';
    return {
      type: log ? 'log' : 'value',
      logBase: spec.unit === 'ranks' ? rankBase(spec) : 10,
      name: spec.title,
      nameLocation: 'middle',
      nameTextStyle: { color: color('soft'), fontSize: 12.5 },
      min: spec.min, max: spec.max, scale: true,
      minInterval: spec.unit === 'count' && !log ? 1 : undefined,
      axisLine: { show: true, lineStyle: { color: color('line') } },
      axisTick: { show: false },
      axisLabel: { color: color('soft'), fontSize: 12, hideOverlap: true, formatter: (value) => tick(spec.unit, value, spec.digits) },
      splitLine: { show: true, lineStyle: { color: color('grid') } },
      minorSplitLine: { show: false },
      ...extra,
    };
  }

  const yAxis = (spec, extra) => axis(spec, { nameGap: 12, nameRotate: 90, nameMoveOverlap: true, ...extra });

  // -- Curves ---------------------------------------------------------------------------------------------------------

  const BROKEN = 'path://M0 0H7V4H0Z M11 0H18V4H11Z';
  const LEGEND_ROWS = 6;
  const LEGEND_ROW = 22;
  const pen = document.createElement('canvas').getContext('2d');

  // How many rows the names of curves take above a chart of a width.
  function legendRows(all, width) {
    pen.font = `12.5px ${getComputedStyle(document.body).fontFamily}`;
    let rows = 1;
    let filled = 0;
    all.forEach((name) => {
      const wide = 18 + 5 + pen.measureText(name).width + 14;
      if (filled > 0 && filled + wide > width) [rows, filled] = [rows + 1, 0];
      filled += wide;
    });
    return rows;
  }

  // How many digits tell the labels of a linear axis apart.
  function digitsBetween(spec, low, high) {
    const [from, to] = [spec.min ?? low, spec.max ?? high];
    const apart = spec.scale === 'linear' && to > from ? Math.ceil(Math.log10(Math.max(Math.abs(from), Math.abs(to)) / ((to - from) / 5))) : 0;
    return Math.min(Math.max(apart + 1, 3), 9);
  }

  // The intervals of a curve. Those without an upper end reach to the top, with an arrow.
  function bandShape(curve, tone, box, api) {
    const at = (i, end) => api.coord([curve.points[i][0], end ?? curve.points[i][1]]);
    const low = curve.band.map((ends, i) => at(i, ends[0]));
    const high = curve.band.map((ends, i) => (ends[1] === null ? [at(i)[0], box.y] : at(i, ends[1])));
    const arrows = high.filter((_, i) => curve.band[i][1] === null).map(([x, y]) => {
      const within = Math.min(Math.max(x, box.x + 6), box.x + box.width - 6);
      return { type: 'polygon', shape: { points: [[within - 6, y + 10], [within, y], [within + 6, y + 10]] }, style: { fill: tone } };
    });
    const area = { type: 'polygon', shape: { points: [...low, ...high.reverse()] }, style: { fill: tone, opacity: 0.2 } };
    return { type: 'group', children: [area, ...arrows] };
  }

  function lines(spec, view, width) {
    const option = base();
    const names = spec.series.map((series) => series.name).filter(Boolean);
    const legend = new Set(names).size > 1;
    const wanted = legend ? legendRows(names, width) : 0;
    // More names than that are turned like pages.
    const rows = wanted > LEGEND_ROWS ? 1 : wanted;
    const icons = spec.series.filter((series) => series.name).map((series) => ({ name: series.name, icon: series.dashed ? BROKEN : 'rect' }));
    const extents = (at) => {
      const ends = at === 1 ? spec.series.flatMap((series) => series.band ?? []).flat().filter((end) => end !== null) : [];
      const values = spec.series.flatMap((series) => series.points.map((point) => point[at])).concat(ends);
      return [values.reduce((a, b) => Math.min(a, b), Infinity), values.reduce((a, b) => Math.max(a, b), -Infinity)];
    };
    const x = { ...spec.x };
    if (x.scale === 'log' && x.unit === 'ranks') [x.min, x.max] = extents(0);
    const y = { ...spec.y };
    [x, y].forEach((one, at) => { one.digits = digitsBetween(one, ...extents(at)); });
    const series = [];
    spec.series.forEach((curve, at) => {
      const tone = seriesColor(at);
      if (curve.band) {
        series.push({
          // The legend shows the color of the first series of a name.
          type: 'custom', name: curve.name, silent: true, z: 1, clip: true, tooltip: { show: false }, itemStyle: { color: tone },
          // The axis covers the ends; all of them are one shape.
          data: curve.points.flatMap((point, i) => curve.band[i].filter((end) => end > 0).map((end) => [point[0], end])), encode: { x: 0, y: 1 },
          renderItem: (params, api) => (params.dataIndex > 0 ? undefined : bandShape(curve, tone, params.coordSys, api)),
        });
      }
      series.push({
        type: 'line', name: curve.name, data: curve.points, z: 3,
        step: curve.step ? 'end' : false,
        showSymbol: Boolean(curve.dots), symbol: 'circle', symbolSize: curve.opens ? 5 : 7,
        lineStyle: { width: curve.scattered ? 0 : 2, color: tone, type: curve.dashed ? 'dashed' : 'solid' },
        itemStyle: { color: tone },
        emphasis: { disabled: !curve.opens, scale: 1.6 },
        areaStyle: spec.series.length === 1 && !curve.band && !curve.opens && !curve.scattered && !isSpectrum(spec) ? { color: tone, opacity: 0.09 } : undefined,
        markLine: at === 0 && spec.marks.length ? marks(spec, width) : undefined,
      });
    });
    return Object.assign(option, {
      legend: legend ? { ...legendOf(icons), itemWidth: 18, itemHeight: 4, ...(rows > 1 ? { type: 'plain' } : {}) } : undefined,
      grid: { left: 4, right: 26, top: legend ? 16 + LEGEND_ROW * rows : isSpectrum(spec) ? 24 : 14, bottom: 6, outerBoundsMode: 'same', outerBoundsContain: 'all' },
      xAxis: axis(x, { nameGap: 28 }),
      yAxis: yAxis(y),
      tooltip: {
        ...option.tooltip,
        trigger: 'axis',
        axisPointer: { type: 'line', lineStyle: { color: color('soft'), type: 'dashed' }, label: { show: false } },
        formatter: (all) => {
          const items = all.filter((item) => item.componentSubType === 'line');
          if (!items.length) return '';
          const head = `${spec.x.title}: ${write[spec.x.unit](items[0].value[0])}`;
          const rows = items.map((item) => {
            const curve = spec.series.find((one) => one.name === item.seriesName) ?? spec.series[0];
            const band = curve.band?.[item.dataIndex];
            const end = band?.[1] === null ? 'open' : write[spec.y.unit](band?.[1] ?? 0);
            const range = band ? ` (${write[spec.y.unit](band[0])} to ${end})` : '';
            return `${item.seriesName && legend ? item.seriesName : spec.y.title}: ${write[spec.y.unit](item.value[1])}${range}`;
          });
          return [head, ...rows].join('\n');
        },
      },
      series,
    });
  }

  const isSpectrum = (spec) => spec.y.title.includes('power');

  const MOST_LABELS = 5;

  // Which marks of a spectrum have a label above the chart: the strongest, as far as the labels do not overlap.
  function labeled(spec, width) {
    const { points } = spec.series[0];
    const log = points.map((point) => Math.log10(point[0]));
    const [low, high] = [Math.floor(log[0]), Math.ceil(log[log.length - 1])];
    pen.font = `11.5px ${getComputedStyle(document.body).fontFamily}`;
    const all = spec.marks.map((mark) => {
      const near = points.reduce((best, point) => (Math.abs(point[0] - mark.at) < Math.abs(best[0] - mark.at) ? point : best));
      return { mark, power: near[1], x: (Math.log10(mark.at) - low) / (high - low) * (width - 100), half: pen.measureText(mark.label).width / 2 + 5 };
    });
    const kept = [];
    all.sort((a, b) => b.power - a.power).forEach((one) => {
      if (kept.length < MOST_LABELS && kept.every((other) => Math.abs(one.x - other.x) > one.half + other.half)) kept.push(one);
    });
    return new Set(kept.map((one) => one.mark));
  }

  function marks(spec, width) {
    const above = isSpectrum(spec) ? labeled(spec, width) : undefined;
    return {
      silent: true, symbol: 'none', precision: 12,
      lineStyle: { color: color('soft'), type: [3, 4], width: 1 },
      label: { color: color('soft'), fontSize: 11.5, position: above ? 'end' : 'insideEndTop', distance: 4 },
      data: spec.marks.map((mark) => ({ xAxis: mark.at, label: { formatter: mark.label, show: above?.has(mark) ?? true } })),
    };
  }

  function legendOf(data) {
    return {
      type: 'scroll', top: 0, left: 0, right: 0, data, itemWidth: 14, itemHeight: 11, itemGap: 14,
      textStyle: { color: color('text'), fontSize: 12.5 },
      pageIconColor: color('accent'), pageIconInactiveColor: color('line'), pageTextStyle: { color: color('soft') },
    };
  }

  // -- Bars -----------------------------------------------------------------------------------------------------------

  function bars(spec) {
    const option = base();
    const width = narrow() ? 110 : 190;
    return Object.assign(option, {
      grid: { left: width + 12, right: 74, top: 4, bottom: 26 },
      xAxis: axis(spec.x, { splitNumber: narrow() ? 2 : 4 }),
      yAxis: names(spec.bars.map((bar) => bar.name), width),
      tooltip: {
        ...option.tooltip,
        formatter: (item) => {
          const bar = spec.bars[item.dataIndex];
          return `${bar.name}${bar.kind ? ` (${bar.kind})` : ''}\n${bar.text}`;
        },
      },
      series: [{
        type: 'bar', barWidth: '62%', barMinHeight: 2,
        data: spec.bars.map((bar, at) => ({
          value: bar.value,
          itemStyle: { color: bar.kind ? kindColor(bar.kind) : seriesColor(at === 0 ? 1 : 0), borderRadius: [0, 4, 4, 0] },
          label: { formatter: () => bar.text },
        })),
        label: { show: true, position: 'right', color: color('text'), fontSize: 12.5 },
      }],
    });
  }

  // The names of rows, beside them.
  function names(all, width) {
    return {
      type: 'category', inverse: true, data: all,
      axisLine: { show: false }, axisTick: { show: false },
      axisLabel: { color: color('text'), fontSize: 12.5, width, overflow: 'truncate', interval: 0 },
    };
  }

  // -- Bars in pairs --------------------------------------------------------------------------------------------------

  function pairs(spec) {
    const option = base();
    const width = narrow() ? 96 : 130;
    const tones = [color('series-8'), color('series-1')];
    return Object.assign(option, {
      legend: { ...legendOf(spec.names.map((name) => ({ name, icon: 'rect' }))), itemHeight: 8 },
      grid: { left: width + 12, right: 74, top: 34, bottom: 26 },
      xAxis: axis(spec.x, { splitNumber: narrow() ? 2 : 4 }),
      yAxis: names(spec.pairs.map((pair) => pair.name), width),
      tooltip: {
        ...option.tooltip,
        formatter: (item) => {
          const pair = spec.pairs[item.dataIndex];
          return [pair.name, ...spec.names.map((name, at) => `${name}: ${pair.texts[at]}`)].join('\n');
        },
      },
      series: spec.names.map((name, which) => ({
        type: 'bar', name, barWidth: '34%', barGap: '8%', barMinHeight: 1,
        itemStyle: { color: tones[which], borderRadius: [0, 3, 3, 0] },
        data: spec.pairs.map((pair) => ({ value: pair.values[which], label: { formatter: () => pair.texts[which] } })),
        label: { show: true, position: 'right', color: color(which ? 'text' : 'soft'), fontSize: 11.5 },
      })),
    });
  }

  // -- Ratios with intervals ------------------------------------------------------------------------------------------

  function forest(spec) {
    const option = base();
    const width = narrow() ? 96 : 130;
    const ends = spec.rows.flatMap((row) => [row.ratio, row.low, row.high]).filter((end) => Number.isFinite(end) && end > 0);
    const low = Math.min(1, ...ends);
    const high = Math.max(1, ...ends);
    const log = high / low > 4;
    const step = high / low > 64 ? 10 : 2;
    const power = (value, round) => step ** round(Math.log(value) / Math.log(step));
    const pad = Math.max((high - low) * 0.06, 0.005);
    const range = log ? { min: power(low, Math.floor), max: power(high, Math.ceil) } : { min: Math.max(low - pad, 0), max: high + pad };
    const x = axis({ title: spec.title, scale: log ? 'log' : 'linear', unit: 'factor', ...range }, { nameGap: 26, splitNumber: narrow() ? 2 : 5 });
    if (log) x.logBase = step;
    else Object.assign(x.axisLabel, { showMinLabel: false, showMaxLabel: false });
    const tones = { good: color('good'), bad: color('bad'), plain: color('soft'), fair: color('soft') };
    return Object.assign(option, {
      grid: { left: width + 12, right: narrow() ? 66 : 200, top: 8, bottom: 46 },
      xAxis: x,
      yAxis: { ...names(spec.rows.map((row) => row.name), width), splitLine: { show: true, lineStyle: { color: color('grid') } } },
      tooltip: {
        ...option.tooltip,
        formatter: (item) => {
          const row = spec.rows[item.dataIndex];
          return `${row.name}\n${row.text}\n${row.verdict}`;
        },
      },
      series: [
        {
          type: 'scatter', data: [], silent: true,
          markLine: {
            silent: true, symbol: 'none', precision: 12, label: { show: false }, data: [{ xAxis: 1 }],
            lineStyle: { color: color('text'), type: 'solid', width: 1, opacity: 0.7 },
          },
        },
        {
          type: 'custom', z: 3, encode: { x: 0, y: 1 }, data: spec.rows.map((row, at) => [row.ratio, at]),
          renderItem: (params, api) => {
            const row = spec.rows[params.dataIndex];
            const box = params.coordSys;
            const within = (px) => Math.min(Math.max(px, box.x), box.x + box.width);
            const [middle, y] = api.coord([row.ratio, params.dataIndex]);
            const tone = tones[row.tone];
            const end = (value, edge) => (value === null ? within(middle) : value > range.min ? within(api.coord([value, params.dataIndex])[0]) : edge);
            const [from, to] = [end(row.low, box.x), end(row.high, box.x)];
            const line = (x1, y1, x2, y2) => ({ type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: tone, lineWidth: 2 } });
            const bounded = row.low !== null || row.high !== null;
            const bar = bounded ? [line(from, y, to, y), line(from, y - 5, from, y + 5), line(to, y - 5, to, y + 5)] : [];
            return {
              type: 'group',
              children: [
                ...bar,
                // Hollow where nothing is known of how sure it is.
                { type: 'circle', shape: { cx: within(middle), cy: y, r: 5 }, style: { fill: bounded ? tone : color('card'), stroke: tone, lineWidth: 2 } },
                {
                  type: 'text',
                  style: {
                    text: narrow() ? row.text.split(' ')[0] : row.text, x: box.x + box.width + 12, y, fill: row.tone === 'fair' ? color('soft') : tone,
                    font: `12px ${getComputedStyle(document.body).fontFamily}`, textVerticalAlign: 'middle',
                  },
                },
              ],
            };
          },
        },
      ],
    });
  }

  // -- Values with their ranges ---------------------------------------------------------------------------------------

  function ranges(spec) {
    const option = base();
    const width = narrow() ? 110 : 250;
    const log = spec.x.scale === 'log';
    const ends = spec.rows.flatMap((row) => [row.middle, row.low, row.high, row.other]).filter((end) => Number.isFinite(end) && (!log || end > 0));
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const [from, to] = log
      ? [10 ** Math.floor(Math.log10(low)), 10 ** Math.ceil(Math.log10(high) + 1e-9)]
      : [Math.min(low, 0), Math.max(high, 0) || 1];
    const pad = log ? 0 : (to - from) * 0.05;
    const x = { ...spec.x, min: from - pad, max: to + pad };
    const tone = color('series-1');
    const axisX = axis(x, { nameGap: 26, splitNumber: narrow() ? 2 : 5 });
    if (!log) Object.assign(axisX.axisLabel, { showMinLabel: false, showMaxLabel: false });
    return Object.assign(option, {
      grid: { left: width + 12, right: 84, top: 8, bottom: spec.x.title ? 46 : 28 },
      xAxis: axisX,
      yAxis: { ...names(spec.rows.map((row) => row.name), width), splitLine: { show: true, lineStyle: { color: color('grid') } } },
      tooltip: {
        ...option.tooltip,
        formatter: (item) => {
          const row = spec.rows[item.dataIndex];
          const text = write[spec.x.unit];
          const range = row.low !== null && row.high !== null ? [`${spec.range}: ${text(row.low)} to ${text(row.high)}`] : [];
          const other = row.other !== null ? [`${spec.other}: ${text(row.other)}`] : [];
          return [row.name, row.text, ...range, ...other].join('\n');
        },
      },
      series: [{
        type: 'custom', z: 3, encode: { x: 0, y: 1 }, data: spec.rows.map((row, at) => [row.middle, at]),
        renderItem: (params, api) => {
          const row = spec.rows[params.dataIndex];
          const box = params.coordSys;
          const place = (value) => Math.min(Math.max(api.coord([value, params.dataIndex])[0], box.x), box.x + box.width);
          const y = api.coord([row.middle, params.dataIndex])[1];
          const line = (x1, y1, x2, y2) => ({ type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: tone, lineWidth: 2 } });
          const ranged = row.low !== null && row.high !== null;
          const [begin, end] = ranged ? [place(row.low), place(row.high)] : [0, 0];
          const bar = ranged ? [line(begin, y, end, y), line(begin, y - 5, begin, y + 5), line(end, y - 5, end, y + 5)] : [];
          const at = row.other === null ? 0 : place(row.other);
          const other = row.other === null ? [] : [{
            type: 'polygon', shape: { points: [[at - 6, y], [at, y - 6], [at + 6, y], [at, y + 6]] },
            style: { fill: color('card'), stroke: color('series-2'), lineWidth: 2 },
          }];
          return {
            type: 'group',
            children: [
              ...bar,
              ...other,
              { type: 'circle', shape: { cx: place(row.middle), cy: y, r: 5 }, style: { fill: tone } },
              {
                type: 'text',
                style: {
                  text: row.text, x: box.x + box.width + 12, y, fill: color('text'),
                  font: `12px ${getComputedStyle(document.body).fontFamily}`, textVerticalAlign: 'middle',
                },
              },
            ],
          };
        },
      }],
    });
  }

  // -- Stretches over time, row by row -----------------------------------------------------------------------------------

  function lanes(spec) {
    const option = base();
    const width = narrow() ? 96 : 190;
    const text = write[spec.x.unit];
    const axisX = axis(spec.x, { nameGap: 26, splitNumber: narrow() ? 2 : 5 });
    // The ends of a recording are no round instants.
    if (spec.x.max !== undefined) Object.assign(axisX.axisLabel, { showMinLabel: false, showMaxLabel: false });
    // A series of each sort, so that the legend hides it.
    const data = spec.sorts.map(() => []);
    spec.rows.forEach((row, y) => {
      let begin = row.start;
      row.ends.forEach((end, at) => {
        data[row.sorts[at]].push([begin, end, y, at]);
        begin = end;
      });
    });
    return Object.assign(option, {
      legend: { ...legendOf(spec.sorts.map((sort) => ({ name: sort.name, icon: 'rect' }))), itemHeight: 8 },
      grid: { left: width + 12, right: 26, top: 40, bottom: 46 },
      xAxis: axisX,
      yAxis: names(spec.rows.map((row) => row.name), width),
      tooltip: {
        ...option.tooltip,
        formatter: (item) => {
          const [begin, end, y, at] = item.value;
          const row = spec.rows[y];
          const what = row.texts[at] || spec.sorts[row.sorts[at]].name;
          return [row.name, `${what}: ${time(end - begin)}`, `${text(begin)} to ${text(end)}`].join('\n');
        },
      },
      dataZoom: [{ type: 'inside', filterMode: 'weakFilter', zoomOnMouseWheel: 'ctrl' }],
      series: spec.sorts.map((sort, which) => ({
        type: 'custom', name: sort.name, clip: true, encode: { x: [0, 1], y: 2 }, data: data[which], ...AT_ONCE,
        itemStyle: { color: color(sort.color) },
        renderItem: (params, api) => {
          const [from, y] = api.coord([api.value(0), api.value(2)]);
          const [to] = api.coord([api.value(1), api.value(2)]);
          const height = Math.min(api.size([0, 1])[1] * 0.66, 26);
          return {
            type: 'rect', shape: { x: from, y: y - height / 2, width: Math.max(to - from, 0.5), height },
            style: { fill: api.visual('color') },
          };
        },
      })),
    });
  }

  // -- Values by rows and columns -------------------------------------------------------------------------------------

  const STOPS = [1, 2, 3, 4, 5, 6];
  const FIGURE_WIDTH = 46;

  // Black or white, whichever stands out from a color.
  function inkOn(ground) {
    const [r, g, b] = ground.match(/[\d.]+/g).map((part) => Number(part) / 255);
    const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) > 0.18 ? '#000' : '#fff';
  }

  function surface(spec, view, width) {
    const option = base();
    const text = write[spec.unit];
    const scaled = (value) => (spec.scale === 'log' ? Math.log10(value) : value);
    const known = spec.cells.flat().filter((value) => Number.isFinite(value));
    const low = known.reduce((a, b) => Math.min(a, b), Infinity);
    const high = known.reduce((a, b) => Math.max(a, b), -Infinity);
    const [from, to] = [scaled(low), scaled(high)];
    const colors = STOPS.map((at) => color(`heat-${at}`));
    const along = (value) => (to > from ? (scaled(value) - from) / (to - from) : 0);
    const nameWidth = narrow() ? 96 : 230;
    const figures = (width - nameWidth) / Math.max(spec.columns.length, 1) >= FIGURE_WIDTH;
    const data = [];
    spec.cells.forEach((row, y) => row.forEach((value, x) => {
      if (!Number.isFinite(value)) return;
      const ground = colors[Math.round(along(value) * (colors.length - 1))];
      data.push({ value: [x, y, scaled(value)], label: { color: inkOn(ground) } });
    }));
    return Object.assign(option, {
      grid: { left: 4, right: 12, top: 40, bottom: 6, outerBoundsMode: 'same', outerBoundsContain: 'all' },
      xAxis: {
        type: 'category', data: spec.columns, name: spec.column_title, nameLocation: 'middle', nameGap: 26,
        nameTextStyle: { color: color('soft'), fontSize: 12.5 },
        axisLine: { lineStyle: { color: color('line') } }, axisTick: { show: false },
        axisLabel: { color: color('soft'), fontSize: 12, hideOverlap: true },
      },
      yAxis: {
        type: 'category', inverse: true, data: spec.rows,
        axisLine: { lineStyle: { color: color('line') } }, axisTick: { show: false },
        axisLabel: { color: color('text'), fontSize: 12, hideOverlap: true, width: nameWidth, overflow: 'truncate' },
      },
      visualMap: {
        type: 'continuous', min: from, max: to > from ? to : from + 0.01, dimension: 2,
        orient: 'horizontal', right: 4, top: 2, itemWidth: 11, itemHeight: narrow() ? 80 : 150, hoverLink: false,
        text: [text(high), text(low)], textStyle: { color: color('soft'), fontSize: 12 },
        inRange: { color: colors },
      },
      tooltip: {
        ...option.tooltip,
        formatter: (item) => {
          const [x, y] = item.value;
          return [spec.rows[y], `${spec.column_title} ${spec.columns[x]}`, `${spec.title}: ${text(spec.cells[y][x])}`].join('\n');
        },
      },
      series: [{
        type: 'heatmap', data, ...AT_ONCE,
        label: { show: figures, fontSize: 12, formatter: (item) => text(spec.cells[item.value[1]][item.value[0]]) },
        itemStyle: { borderWidth: 1, borderColor: color('card') },
        emphasis: { itemStyle: { borderColor: color('text'), borderWidth: 1 } },
      }],
    });
  }

  // -- Rows over time ----------------------------------------------------------------------------------------------

  // The next of 1, 2 and 5 times a power of ten.
  function roundStep(length) {
    const power = 10 ** Math.floor(Math.log10(length));
    return power * ([1, 2, 5].find((one) => one * power >= length) ?? 10);
  }

  function heat(spec) {
    const option = base();
    const columns = spec.cells[0]?.length ?? 0;
    const length = (at) => (at === columns - 1 ? spec.last_cell_ns : spec.cell_ns);
    const begin = (at) => spec.start_ns + at * spec.cell_ns;
    const data = [];
    let low = 1;
    let high = 1e-12;
    spec.cells.forEach((row, y) => row.forEach((noise, x) => {
      if (noise <= 0) return;
      const part = Math.min(noise / length(x), 1);
      low = Math.min(low, part);
      high = Math.max(high, part);
      data.push([x, y, Math.log10(part)]);
    }));
    const total = columns * spec.cell_ns;
    const decimals = Math.min(Math.max(2 - Math.floor(Math.log10(total / 1e9)), 0), 9);
    const round = roundStep(total / (narrow() ? 4 : 8));
    // The round instant in a cell, if there is one.
    const instantIn = (at) => {
      const next = Math.ceil(begin(at) / round) * round;
      return next < begin(at) + length(at) ? next : undefined;
    };
    return Object.assign(option, {
      grid: { left: 4, right: 12, top: 40, bottom: 6, outerBoundsMode: 'same', outerBoundsContain: 'all' },
      xAxis: {
        type: 'category', data: Array.from({ length: columns }, (_, at) => at), name: 'time since the start', nameLocation: 'middle', nameGap: 26,
        nameTextStyle: { color: color('soft'), fontSize: 12.5 },
        axisLine: { lineStyle: { color: color('line') } }, axisTick: { show: false },
        axisLabel: {
          color: color('soft'), fontSize: 12, hideOverlap: true, interval: (at) => instantIn(at) !== undefined,
          formatter: (at) => seconds(instantIn(Number(at)) ?? begin(Number(at)), 9).replace(/\.?0+(?=s)/, ''),
        },
      },
      yAxis: {
        type: 'category', inverse: true, data: spec.rows.map((row) => row.short),
        axisLine: { lineStyle: { color: color('line') } }, axisTick: { show: false },
        axisLabel: { color: color('soft'), fontSize: 12, hideOverlap: true, width: narrow() ? 60 : 130, overflow: 'truncate' },
      },
      visualMap: {
        type: 'continuous', min: Math.log10(low), max: Math.max(Math.log10(high), Math.log10(low) + 0.01), dimension: 2,
        orient: 'horizontal', right: 4, top: 2, itemWidth: 11, itemHeight: narrow() ? 80 : 150, hoverLink: false,
        text: [`${ratio(high)} lost`, ratio(low)], textStyle: { color: color('soft'), fontSize: 12 },
        inRange: { color: [1, 2, 3, 4, 5, 6].map((at) => color(`heat-${at}`)) },
      },
      tooltip: {
        ...option.tooltip,
        formatter: (item) => {
          const [x, y] = item.value;
          const noise = spec.cells[y][x];
          return `${spec.rows[y].long}, ${seconds(begin(x), decimals + 2)} to ${seconds(begin(x) + length(x), decimals + 2)}\n` +
            `${ratio(noise / length(x))} lost, ${time(noise)}`;
        },
      },
      series: [{
        type: 'heatmap', data, ...AT_ONCE,
        itemStyle: { borderWidth: spec.rows.length <= 24 ? 0.5 : 0, borderColor: color('card') },
        emphasis: { itemStyle: { borderColor: color('text'), borderWidth: 1 } },
      }],
    });
  }

  // -- Detours over time -------------------------------------------------------------------------------------------

  const kindOf = (spec, at) => (spec.source[at] < 0 ? 'unknown' : spec.kinds[spec.sources[spec.source[at]][0]]);
  const sourceOf = (spec, at) => (spec.source[at] < 0 ? 'not known' : spec.sources[spec.source[at]][1]);
  const nodeOf = (spec, at) => (spec.nodes.length > 1 ? ` on ${spec.nodes[spec.node[at]]}` : '');
  const span = (spec) => Math.max(spec.end_ns - spec.begin_ns, 1);
  const BARS_BELOW = 400;

  const symbolSize = (count) => (count > COMMON ? 4 : count > RARE ? 6 : 9);

  // For each kind which detours it owns.
  function groups(spec) {
    const found = new Map();
    spec.starts.forEach((_, at) => {
      const kind = kindOf(spec, at);
      if (!found.has(kind)) found.set(kind, []);
      found.get(kind).push(at);
    });
    return [...found].sort((a, b) => b[1].length - a[1].length);
  }

  function points(spec, view) {
    const option = base();
    view.groups ??= groups(spec);
    view.range ??= [spec.begin_ns, spec.end_ns];
    const decimals = () => Math.min(Math.max(Math.ceil(-Math.log10((view.range[1] - view.range[0]) / 1e9 / 8)), 0), 9);
    const lengths = spec.durations.filter((ns) => ns > 0);
    const lowest = 10 ** Math.floor(Math.log10(lengths[lengths.length - 1] ?? 1));
    const highest = 10 ** Math.ceil(Math.log10((lengths[0] ?? 10) * 1.02));
    const series = view.groups.map(([kind, members]) => {
      const data = new Float64Array(members.length * 2);
      members.forEach((at, i) => {
        data[2 * i] = spec.starts[at];
        // What has no length has no place on a logarithmic axis.
        data[2 * i + 1] = Math.max(spec.durations[at], lowest);
      });
      return {
        type: 'scatter', name: kind, data, dimensions: ['start', 'length'], symbol: SHAPES[kind] ?? 'circle',
        symbolSize: view.extents?.length ? 9 : symbolSize(members.length), large: true, largeThreshold: 2000, ...AT_ONCE,
        itemStyle: { color: kindColor(kind), opacity: members.length > COMMON ? 0.8 : 0.92 },
      };
    });
    series.push({
      type: 'custom', name: '', data: view.extents ?? [], z: 4, clip: true, encode: { x: [0, 1], y: 2 },
      renderItem: (params, api) => {
        const from = api.coord([api.value(0), api.value(2)]);
        const to = api.coord([api.value(1), api.value(2)]);
        return {
          type: 'rect', shape: { x: from[0], y: from[1] - 2.5, width: Math.max(to[0] - from[0], 1), height: 5 },
          style: { fill: kindColor(kindOf(spec, api.value(3))) },
        };
      },
    });
    const open = view.open;
    series.push({
      type: 'scatter', name: '', silent: true, z: 5, symbol: 'circle', symbolSize: 17,
      data: chosen(spec, open, lowest),
      itemStyle: { color: 'transparent', borderColor: color('text'), borderWidth: 2 },
    });
    const from = [spec.begin_ns, spec.end_ns];
    return Object.assign(option, {
      legend: legendOf(view.groups.map(([kind]) => kind)),
      grid: { left: 4, right: 26, top: 36, bottom: 52, outerBoundsMode: 'same', outerBoundsContain: 'all' },
      xAxis: axis({ title: 'time since the start', scale: 'linear', unit: 'instant', min: from[0], max: from[1] }, {
        nameGap: 28, splitNumber: narrow() ? 3 : 8,
        axisLabel: { color: color('soft'), fontSize: 12, hideOverlap: true, formatter: (value) => seconds(value, decimals()), showMaxLabel: false },
      }),
      yAxis: yAxis({ title: 'length', scale: 'log', unit: 'time', min: lowest, max: highest }),
      dataZoom: [
        {
          type: 'slider', bottom: 12, height: 30, filterMode: 'none', minValueSpan: 200, showDetail: false, brushSelect: true,
          startValue: view.range[0], endValue: view.range[1],
          borderColor: color('line'), fillerColor: faded('accent', 0.14), backgroundColor: color('raised'),
          handleStyle: { color: color('card'), borderColor: color('accent') }, moveHandleStyle: { color: color('accent'), opacity: 0.5 },
          dataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } },
          selectedDataBackground: { lineStyle: { opacity: 0 }, areaStyle: { opacity: 0 } },
        },
        { type: 'inside', filterMode: 'none', minValueSpan: 200, zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: false, preventDefaultMouseMove: false, startValue: view.range[0], endValue: view.range[1] },
      ],
      tooltip: {
        ...option.tooltip,
        formatter: (item) => {
          const at = member(spec, view, item);
          return at === undefined ? '' : `${time(spec.durations[at])}  ${sourceOf(spec, at)} (${kindOf(spec, at)})\n` +
            `CPU ${spec.cpu[at]}${nodeOf(spec, at)}, ${seconds(spec.starts[at], 6)} into the run`;
        },
      },
      series,
    });
  }

  const chosen = (spec, open, lowest) => (open === undefined ? [] : [[spec.starts[open], Math.max(spec.durations[open], lowest)]]);

  // Rings the open detour, if there is one.
  function ring({ chart, spec, view }) {
    const lowest = chart.getOption().yAxis[0].min;
    chart.setOption({ series: [...view.groups.map(() => ({})), {}, { data: chosen(spec, view.open, lowest) }] });
  }

  // The detour that an item of the chart is.
  function member(spec, view, item) {
    if (item.seriesType === 'custom') return item.value[3];
    return view.groups[item.seriesIndex]?.[1][item.dataIndex];
  }

  function look(id) {
    const { chart, spec, view } = drawn.get(id);
    const zoom = chart.getOption().dataZoom[0];
    view.range = [zoom.startValue, zoom.endValue];
    const [from, to] = view.range;
    const inView = [];
    for (let at = 0; at < spec.starts.length; at += 1) {
      if (spec.starts[at] + spec.durations[at] >= from && spec.starts[at] <= to) inView.push(at);
    }
    // So few are drawn as long as they are.
    const wide = inView.length <= BARS_BELOW && to - from < span(spec);
    view.extents = wide ? inView.map((at) => [spec.starts[at], spec.starts[at] + spec.durations[at], Math.max(spec.durations[at], 1), at]) : [];
    if (wide || view.wide) {
      const sizes = view.groups.map(([, members]) => ({ symbolSize: wide ? 9 : symbolSize(members.length) }));
      chart.setOption({ series: [...sizes, { data: view.extents }] });
    }
    view.wide = wide;
    view.said.textContent = `${grouped(inView.length)} of ${grouped(spec.starts.length)} drawn detours in view`;
    view.reset.disabled = to - from >= span(spec) * 0.999;
  }

  function zoomTo(id, from, to) {
    const { chart, spec } = drawn.get(id);
    const startValue = Math.max(from, spec.begin_ns);
    chart.dispatchAction({ type: 'dataZoom', startValue, endValue: Math.min(Math.max(to, startValue + 200), spec.end_ns) });
  }

  function pointTools(id) {
    const { chart, spec, view } = drawn.get(id);
    const tools = document.getElementById(`${id}-tools`);
    const tool = (text, run) => {
      const button = make('button', { type: 'button', text });
      button.addEventListener('click', run);
      tools.append(button);
      return button;
    };
    const by = (part) => () => {
      const [from, to] = view.range;
      const middle = view.open === undefined ? (from + to) / 2 : spec.starts[view.open] + spec.durations[view.open] / 2;
      const half = Math.max((to - from) * part / 2, 100);
      zoomTo(id, middle - half, middle + half);
    };
    view.reset = tool('Whole run', () => zoomTo(id, spec.begin_ns, spec.end_ns));
    tool('Zoom in', by(0.25));
    tool('Zoom out', by(4));
    tool('Longest', () => openDetour(0));
    view.said = make('span', { class: 'said' });
    tools.append(view.said);
    chart.on('datazoom', () => look(id));
    chart.on('click', (item) => {
      const at = member(spec, view, item);
      if (at !== undefined) openDetour(at);
    });
    look(id);
  }

  // -- One detour -----------------------------------------------------------------------------------------------------

  const detoursId = Object.keys(specs).find((id) => specs[id].draws === 'points');

  // Kinds by what they interrupt: crates/analyze/src/summary/timeline.rs.
  const URGENCY = { nmi: 3, irq: 2, softirq: 1 };
  const RESTS = new Set(['edge', 'unseen', 'not_traced']);

  function entriesOf(spec, at) {
    const flat = spec.activities[at] ?? [];
    const entries = [];
    for (let i = 0; i < flat.length; i += 6) {
      entries.push({
        offset: flat[i], self: flat[i + 1], kind: spec.all_kinds[flat[i + 2]],
        source: spec.strings[flat[i + 3]], detail: spec.strings[flat[i + 4]], depth: flat[i + 5],
      });
    }
    return entries;
  }

  // When each activity ran itself: what begins later runs until its self time is over, then what it interrupted goes on.
  function replay(entries) {
    const pieces = entries.map(() => []);
    const open = [];
    let now = 0;
    const runUntil = (until) => {
      while (open.length && now < until) {
        const inner = open[open.length - 1];
        const step = Math.min(inner.left, until - now);
        const own = pieces[inner.at];
        if (own.length && own[own.length - 1][1] === now) own[own.length - 1][1] = now + step;
        else own.push([now, now + step]);
        inner.left -= step;
        now += step;
        if (inner.left <= 0) open.pop();
      }
      now = Math.max(now, until);
    };
    entries.forEach((entry, at) => {
      if (RESTS.has(entry.kind)) return;
      runUntil(Math.max(entry.offset, 0));
      open.push({ at, left: entry.self });
    });
    runUntil(now + open.reduce((sum, one) => sum + one.left, 0));
    return pieces;
  }

  function make(name, { text, ...attributes } = {}, children = []) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    element.append(...children);
    return element;
  }

  function shape(name, attributes, text) {
    const element = document.createElementNS('http://www.w3.org/2000/svg', name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function timeline(entries, duration, width) {
    const ROW = 30;
    const named = entries.filter((entry) => !RESTS.has(entry.kind));
    const rows = 1 + (named.length ? Math.max(...named.map((entry) => entry.depth)) + 1 : 0);
    const height = rows * ROW + 26;
    const pieces = replay(entries);
    const end = Math.max(duration, ...pieces.flat().map((piece) => piece[1]), 1);
    const x = (ns) => ns / end * width;
    const svg = shape('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `Timeline of ${entries.length} activities over ${time(duration)}; the table below holds the same.` });
    const block = (from, to, row, kind, hint, faint) => {
      const rect = shape('rect', {
        x: x(from).toFixed(2), y: row * ROW + 2, width: Math.max(x(to - from), 1).toFixed(2), height: ROW - 5, rx: 4,
        fill: kindColor(kind), opacity: faint ? 0.28 : 1,
      });
      rect.append(shape('title', {}, hint));
      svg.append(rect);
    };
    const write = (from, to, row, text, fill) => {
      const room = x(to - from) - 12;
      const fits = Math.floor(room / 7.2);
      if (fits < 3) return;
      const short = text.length > fits ? `${text.slice(0, fits - 1)}\u2026` : text;
      svg.append(shape('text', { x: (x(from) + 7).toFixed(2), y: row * ROW + ROW / 2 + 4, fill, 'font-size': 12.5 }, short));
    };
    const parts = width < 500 ? 2 : 4;
    for (let part = 0; part <= parts; part += 1) {
      const at = end * part / parts;
      svg.append(shape('line', { x1: x(at), x2: x(at), y1: 0, y2: rows * ROW, stroke: color('line'), 'stroke-width': 1 }));
      svg.append(shape('text', {
        x: x(at), y: height - 6, fill: color('soft'), 'font-size': 12, 'text-anchor': part === 0 ? 'start' : part === parts ? 'end' : 'middle',
      }, tick('time', at)));
    }
    const rest = entries.find((entry) => entry.kind !== 'edge' && RESTS.has(entry.kind))?.kind ?? 'edge';
    block(0, duration, 0, rest, `the detour: ${time(duration)}`, true);
    write(0, duration, 0, `the detour: ${time(duration)}`, color('text'));
    entries.forEach((entry, at) => {
      if (!pieces[at].length) return;
      const row = entry.depth + 1;
      const hint = `${entry.source} (${entry.kind}): ${time(entry.self)} at ${time(entry.offset)}`;
      const from = pieces[at][0][0];
      const to = pieces[at][pieces[at].length - 1][1];
      if (pieces[at].length > 1) block(from, to, row, entry.kind, hint, true);
      pieces[at].forEach((piece) => block(piece[0], piece[1], row, entry.kind, hint, false));
      const widest = pieces[at].reduce((a, b) => (b[1] - b[0] > a[1] - a[0] ? b : a));
      write(widest[0], widest[1], row, `${entry.source} ${time(entry.self)}`, color('card'));
    });
    return svg;
  }

  function activities(entries, duration, more) {
    const head = ['at', 'self', 'share', 'kind', 'source', 'detail'];
    const text = new Set(['kind', 'source', 'detail']);
    const rows = entries.map((entry) => make('tr', {}, [
      make('td', { text: time(entry.offset) }),
      make('td', { text: time(entry.self) }),
      make('td', { text: duration > 0 ? share(entry.self / duration) : '-' }),
      make('td', { class: 'text' }, [make('i', { class: 'kind', 'data-kind': entry.kind }), entry.kind]),
      make('td', { class: 'text nested', text: `${'  '.repeat(entry.depth)}${entry.source}` }),
      make('td', { class: 'text', text: entry.detail }),
    ]));
    if (more) {
      rows.push(make('tr', { class: 'total' }, [
        make('td', { text: '' }), make('td', { text: time(more[2]) }), make('td', { text: duration > 0 ? share(more[2] / duration) : '-' }),
        make('td', { class: 'text', colspan: '3', text: `${grouped(more[1])} more activities that took less` }),
      ]));
    }
    const titles = head.map((title) => make('th', { scope: 'col', text: title, ...(text.has(title) ? { class: 'text' } : {}) }));
    const table = make('table', {}, [
      make('caption', { text: 'What happened in this detour' }),
      make('thead', {}, [make('tr', {}, titles)]),
      make('tbody', {}, rows),
    ]);
    return make('div', { class: 'wide', tabindex: '0', role: 'region', 'aria-label': 'What happened in this detour' }, [table]);
  }

  function openDetour(at, quiet) {
    const { spec, view } = drawn.get(detoursId);
    const panel = document.getElementById('detour');
    view.open = at;
    const duration = spec.durations[at];
    const entries = entriesOf(spec, at);
    const incomplete = spec.incomplete.includes(at) ? ', INCOMPLETE: kernel events were lost in it' : '';
    const place = `CPU ${spec.cpu[at]} on ${spec.nodes[spec.node[at] ?? 0]}`;
    const title = `Detour ${spec.number[at]} of ${place}: ${time(duration)}, ${seconds(spec.starts[at], 6)} into the run${incomplete}`;
    panel.hidden = false;
    const parts = [make('h3', { text: title })];
    if (entries.length) {
      parts.push(timeline(entries, duration, Math.max(panel.clientWidth - 38, 240)));
    } else if (spec.source[at] >= 0) {
      const node = spec.nodes.length > 1 ? ` --node ${spec.nodes[spec.node[at]]}` : '';
      const command = make('code', { text: `becalm detours ${spec.run}${node} --detour ${spec.cpu[at]}:${spec.number[at]}` });
      parts.push(make('p', {}, [`Mostly ${sourceOf(spec, at)} (${kindOf(spec, at)}). Its activities are not part of this page; they are shown by `, command]));
    } else {
      parts.push(make('p', { text: 'Nothing of the kernel was recorded in it.' }));
    }
    const action = (text, run) => {
      const button = make('button', { type: 'button', text });
      button.addEventListener('click', run);
      return button;
    };
    const actions = [action('Zoom to it', () => zoomTo(detoursId, spec.starts[at] - duration * 2, spec.starts[at] + duration * 3))];
    if (at > 0) actions.push(action('Next longer', () => openDetour(at - 1)));
    if (at + 1 < spec.starts.length) actions.push(action('Next shorter', () => openDetour(at + 1)));
    actions.push(action('Close', closeDetour));
    parts.push(make('div', { class: 'actions' }, actions));
    if (entries.length) parts.push(activities(entries, duration, spec.more.find((one) => one[0] === at)));
    panel.replaceChildren(...parts);
    document.querySelectorAll('tr[data-opens]').forEach((row) => row.classList.toggle('open', Number(row.dataset.opens) === at));
    ring(drawn.get(detoursId));
    if (!quiet) panel.scrollIntoView({ block: 'nearest' });
  }

  function closeDetour() {
    drawn.get(detoursId).view.open = undefined;
    document.getElementById('detour').hidden = true;
    document.querySelectorAll('tr.open').forEach((row) => row.classList.remove('open'));
    ring(drawn.get(detoursId));
  }

  // -- Drawing --------------------------------------------------------------------------------------------------------

  const makers = { lines, bars, pairs, forest, ranges, lanes, surface, heat, points };
  const drawn = new Map();

  function draw(id) {
    const one = drawn.get(id);
    one.narrow = narrow();
    one.chart.setOption(makers[one.spec.draws](one.spec, one.view, one.chart.getWidth()), { notMerge: true });
    paint(one.chart);
  }

  // All of it now: ECharts 6.1.0 paints heat maps in slices of 15 ms over several frames, whatever is asked for, and paper
  // does not wait for those.
  function paint(chart) {
    const zr = chart.getZr();
    zr.flush();
    const sliced = zr.storage.getDisplayList(true).filter((shape) => shape.incremental);
    if (!sliced.length) return;
    sliced.forEach((shape) => { shape.incremental = 0; });
    zr.refreshImmediately();
  }

  function drawAll() {
    drawn.forEach((_, id) => draw(id));
    const open = drawn.get(detoursId)?.view.open;
    if (open !== undefined) openDetour(open, true);
  }

  function begin(id) {
    const element = document.getElementById(`${id}-chart`);
    const spec = specs[id];
    element.style.height = `${element.dataset.height}px`;
    const chart = echarts.init(element, null, { renderer: 'canvas' });
    drawn.set(id, { chart, spec, element, view: {} });
    draw(id);
    if (spec.draws === 'points') pointTools(id);
    chart.on('click', (item) => {
      const detour = spec.series?.find((series) => series.name === item.seriesName)?.opens?.[item.dataIndex];
      if (detour !== undefined && detour !== null) openDetour(detour);
    });
  }

  function resize() {
    if (printing) return;
    drawn.forEach((one, id) => {
      one.chart.resize();
      // Names above curves, and figures in cells, stand where there is room.
      if (one.narrow !== narrow() || one.spec.series?.length > 1 || one.spec.draws === 'surface') draw(id);
      else paint(one.chart);
    });
  }

  // -- Tables ---------------------------------------------------------------------------------------------------------

  function sort(header) {
    const table = header.closest('table');
    const at = header.cellIndex;
    const body = table.tBodies[0];
    const now = header.getAttribute('aria-sort');
    const isText = header.classList.contains('text');
    // Numbers begin with the largest, names with the first.
    const order = now ? (now === 'ascending' ? 'descending' : 'ascending') : isText ? 'ascending' : 'descending';
    const sign = order === 'ascending' ? 1 : -1;
    const rows = [...body.rows];
    const keyOf = (row) => {
      const cell = row.cells[at];
      return isText ? cell.textContent : cell.dataset.key === undefined ? undefined : Number(cell.dataset.key);
    };
    const compare = (a, b) => {
      if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
      return sign * (isText ? a.localeCompare(b, 'en', { numeric: true }) : a - b);
    };
    const keyed = rows.filter((row) => !row.classList.contains('total')).map((row) => [keyOf(row), row]);
    keyed.sort((a, b) => compare(a[0], b[0]));
    body.append(...keyed.map((pair) => pair[1]), ...rows.filter((row) => row.classList.contains('total')));
    table.querySelectorAll('th').forEach((other) => other.removeAttribute('aria-sort'));
    header.setAttribute('aria-sort', order);
  }

  document.addEventListener('click', (event) => {
    const header = event.target.closest('table.sorts th');
    if (header) sort(header);
    const row = event.target.closest('tr[data-opens]');
    if (row && drawn.has(detoursId)) openDetour(Number(row.dataset.opens));
  });

  // -- Theme and paper ------------------------------------------------------------------------------------------------

  const THEMES = ['auto', 'light', 'dark'];
  const button = document.getElementById('theme');
  const stored = () => {
    try { return localStorage.getItem('becalm-theme'); } catch { return null; }
  };
  let theme = THEMES.includes(stored()) ? stored() : 'auto';

  function applyTheme() {
    if (theme === 'auto') delete root.dataset.theme;
    else root.dataset.theme = theme;
    button.textContent = { auto: 'Auto', light: 'Light', dark: 'Dark' }[theme];
    button.setAttribute('aria-label', `Color theme: ${theme}`);
  }

  button.addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try { localStorage.setItem('becalm-theme', theme); } catch { /* it is asked for again next time */ }
    applyTheme();
    drawAll();
  });

  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    if (theme === 'auto') drawAll();
  });

  // Paper is light and as wide as paper.
  const PAPER = 690;
  let printing = false;
  let folded = [];

  // On paper a chart is a picture. Printers get a canvas as the strokes that were made on it, and those of a heat map,
  // in slices as they are, break what follows.
  function picture(one) {
    const painted = one.chart.renderToCanvas({ pixelRatio: 2, backgroundColor: '#fff' });
    const sheet = document.createElement('canvas');
    sheet.className = 'sheet';
    sheet.width = painted.width;
    sheet.height = painted.height;
    sheet.getContext('2d').drawImage(painted, 0, 0);
    one.element.append(sheet);
  }

  window.addEventListener('beforeprint', () => {
    printing = true;
    folded = [...document.querySelectorAll('details.notes:not([open])')];
    folded.forEach((notes) => { notes.open = true; });
    root.dataset.theme = 'light';
    drawn.forEach((one, id) => {
      one.chart.resize({ width: PAPER });
      draw(id);
      picture(one);
    });
  });
  window.addEventListener('afterprint', () => {
    printing = false;
    folded.forEach((notes) => { notes.open = false; });
    document.querySelectorAll('.sheet').forEach((sheet) => sheet.remove());
    applyTheme();
    drawn.forEach((one) => one.chart.resize({ width: 'auto' }));
    drawAll();
  });

  let waiting;
  window.addEventListener('resize', () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(resize);
  });

  const nav = document.querySelector('.top nav');
  const links = new Map([...nav.querySelectorAll('a')].map((link) => [link.hash.slice(1), link]));
  const watch = new IntersectionObserver((seen) => seen.forEach((one) => {
    if (!one.isIntersecting) return;
    links.forEach((link) => link.classList.remove('here'));
    const here = links.get(one.target.id);
    here?.classList.add('here');
    // On a phone the bar is wider than the screen.
    if (here) nav.scrollTo({ left: here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2 });
  }), { rootMargin: '-30% 0px -60% 0px' });
  document.querySelectorAll('section.card').forEach((section) => watch.observe(section));

  applyTheme();
  Object.keys(specs).forEach(begin);
  // For tests: when everything was drawn, in milliseconds since the page was asked for, and what draws it.
  root.dataset.drawnMs = String(Math.round(performance.now()));
  window.becalm = { drawn, openDetour, zoomTo, write: { ...write, share, grouped }, replay };
})();
